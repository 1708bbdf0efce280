//! Models are loaded from files and run, texts are compared, and judged articles are related, through the library and through
//! the program.

mod tiny;

use std::fs;
use std::process::{Command, Output};

use samestory_semantic::{
    ChunkMode, ChunkingStrategy, Counts, EmbeddingProvider, Error, LocalProvider, ModelOptions, Pooling,
    RelateOptions, relate, semantic_similarity,
};
use serde_json::{Value, json};
use tiny::{Directory, Graph, lookup, tokenizer, vectors, vocabulary, word_model};
use tract_onnx::pb::tensor_proto::DataType;

const FERRY: &str = "The ferry sails on Monday, to the island.";
const FAEHRE: &str = "Die Fähre fährt am Montag zur Insel!";
const BAKERY: &str = "A bakery opens: bread in the street.";

fn open(directory: &Directory) -> LocalProvider {
    LocalProvider::open(&directory.model(), ModelOptions::default()).unwrap()
}

#[test]
fn a_translation_is_close_and_another_story_is_not() {
    let directory = Directory::with_model(&word_model());
    let provider = open(&directory);
    assert_eq!((provider.model_id(), provider.dimension(), provider.max_tokens()), ("tiny", 8, 512));
    let [ferry, faehre, bakery] = [FERRY, FAEHRE, BAKERY].map(|text| provider.embed(text).unwrap());
    assert_eq!(ferry.vector(), [0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(ferry.model_id(), Some("tiny"));
    assert_eq!(semantic_similarity(&ferry, &faehre).unwrap(), 1.0);
    assert_eq!(semantic_similarity(&ferry, &bakery).unwrap(), 0.0);
}

#[test]
fn the_model_of_another_directory_cannot_be_compared() {
    let directory = Directory::with_model(&word_model());
    let named = |name: &str| ModelOptions { model_id: Some(name.to_owned()), ..ModelOptions::default() };
    let a = LocalProvider::open(&directory.model(), named("one")).unwrap().embed(FERRY).unwrap();
    let b = LocalProvider::open(&directory.model(), named("two")).unwrap().embed(FERRY).unwrap();
    assert!(matches!(semantic_similarity(&a, &b), Err(Error::ModelMismatch { .. })));
}

#[test]
fn the_pooling_is_the_one_asked_for_else_the_declared_one_else_the_mean() {
    let directory = Directory::with_model(&word_model());
    assert_eq!(open(&directory).pooling(), Pooling::Mean);
    for (key, pooling) in [
        ("pooling_mode_cls_token", Pooling::Cls),
        ("pooling_mode_max_tokens", Pooling::Max),
        ("pooling_mode_mean_tokens", Pooling::Mean),
    ] {
        directory.write("tiny/1_Pooling/config.json", json!({ key: true, "other": false }).to_string());
        assert_eq!(open(&directory).pooling(), pooling);
    }
    let asked = ModelOptions { pooling: Some(Pooling::MeanNoNorm), ..ModelOptions::default() };
    let provider = LocalProvider::open(&directory.model(), asked).unwrap();
    // Four words that are known, of twelve tokens with the model's own and the punctuation.
    let tokens = 12.0;
    assert_eq!(
        provider.embed(FERRY).unwrap().vector()[..5],
        [1.0 / tokens; 4].into_iter().chain([0.0]).collect::<Vec<f32>>()
    );
    directory.write("tiny/1_Pooling/config.json", r#"{"pooling_mode_lasttoken": true}"#);
    let refused = LocalProvider::open(&directory.model(), ModelOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("names no known pooling"), "{refused}");
}

#[test]
fn each_kind_of_output_and_of_number_is_understood() {
    let ones = |graph: Graph| graph.integers("one", &[1], [1]);
    // One vector for the text, of 32-bit ids; the other output, though first, is not an embedding.
    let sentence = ones(Graph::default().input("input_ids", DataType::Int32))
        .floats("words", &[vectors().len() as i64, 8], vectors().into_iter().flatten())
        .node("Gather", &["words", "input_ids"], "logits", &[])
        .node("ReduceSum", &["logits", "one"], "sentence_embedding", &[("keepdims", &[0])])
        .output("logits", &[Some(1), None, Some(8)])
        .output("sentence_embedding", &[Some(1), Some(8)])
        .file();
    let directory = Directory::with_model(&sentence);
    let ferry = open(&directory).embed(FERRY).unwrap();
    assert_eq!(ferry.vector(), [0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]);
    // An output of another name, if it is the only one.
    let other =
        lookup().node("Identity", &["looked_up"], "states", &[]).output("states", &[Some(1), None, Some(8)]);
    assert_eq!(open(&Directory::with_model(&other.file())).embed(FERRY).unwrap().vector(), ferry.vector());
}

#[test]
fn a_transformer_layer_gives_what_its_formulas_say_for_every_length() {
    let directory = Directory::with_model(&transformer());
    let asked = ModelOptions { pooling: Some(Pooling::MeanNoNorm), ..ModelOptions::default() };
    let provider = LocalProvider::open(&directory.model(), asked).unwrap();
    for text in [
        "ferry",
        FERRY,
        "bread island bread street ferry boat opens sails monday",
        &"boat bread ".repeat(100),
    ] {
        let words: Vec<String> = text.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let known: Vec<usize> = words
            .iter()
            .flat_map(|word| {
                let bare = word.trim_end_matches([',', '.']);
                let id = vocabulary().iter().position(|known| *known == bare).unwrap_or(0);
                std::iter::once(id).chain((bare.len() < word.len()).then_some(0))
            })
            .collect();
        let ids: Vec<usize> = [1].into_iter().chain(known).chain([2]).collect();
        let expected = layer_by_hand(&ids);
        let found = provider.embed(text).unwrap();
        for (found, expected) in found.vector().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{text}: {found} is not {expected}");
        }
    }
}

/// Weights that are neither symmetric nor tidy.
fn weight(matrix: usize, row: usize, column: usize) -> f32 {
    ((matrix * 64 + row * 8 + column) as f32 * 0.7).sin()
}

/// The vector of a place in the text.
fn place(position: usize, axis: usize) -> f32 {
    ((position * 3 + axis) as f32 * 0.3).cos() * 0.2
}

const EPSILON: f32 = 1e-5;
const HEADS: usize = 2;
/// One over the root of a head's size.
const SCALE: f32 = 0.5;

/// A layer as exporters write BERT: positions cut from a table by the text's length, attention with two heads under a mask, the
/// shapes computed on the way, the sum with what came in, and a layer norm in small operators.
fn transformer() -> Vec<u8> {
    let mut graph = lookup()
        .input("attention_mask", DataType::Int64)
        .integers("second", &[], [1])
        .integers("zero", &[1], [0])
        .integers("one", &[1], [1])
        .floats("places", &[1, 512, 8], (0..512).flat_map(|p| (0..8).map(move |a| place(p, a))))
        .node("Shape", &["input_ids"], "shape", &[])
        .node("Gather", &["shape", "second"], "length", &[("axis", &[0])])
        .node("Unsqueeze", &["length", "zero"], "end", &[])
        .node("Slice", &["places", "zero", "end", "one"], "placed", &[])
        .node("Add", &["looked_up", "placed"], "x", &[])
        .node("Cast", &["attention_mask"], "mask", &[("to", &[1])])
        .floats("float_one", &[], [1.0])
        .floats("never", &[], [-10_000.0])
        .integers("heads_and_rows", &[2], [1, 2])
        .node("Unsqueeze", &["mask", "heads_and_rows"], "mask_row", &[])
        .node("Sub", &["float_one", "mask_row"], "masked", &[])
        .node("Mul", &["masked", "never"], "penalty", &[]);
    for (number, name) in ["wq", "wk", "wv"].into_iter().enumerate() {
        let values = (0..8).flat_map(|row| (0..8).map(move |column| weight(number, row, column)));
        graph = graph.floats(name, &[8, 8], values);
    }
    graph = graph
        .integers("first", &[], [0])
        .integers("heads", &[1], [HEADS as i64])
        .integers("head_size", &[1], [8 / HEADS as i64])
        .integers("whole", &[1], [8])
        .node("Gather", &["shape", "first"], "batch", &[("axis", &[0])])
        .node("Unsqueeze", &["batch", "zero"], "texts", &[])
        .node("Concat", &["texts", "end", "heads", "head_size"], "in_heads", &[("axis", &[0])])
        .node("Concat", &["texts", "end", "whole"], "in_one", &[("axis", &[0])]);
    for (weights, product, perm) in
        [("wq", "q", [0, 2, 1, 3]), ("wk", "k", [0, 2, 3, 1]), ("wv", "v", [0, 2, 1, 3])]
    {
        let (flat, split) = (format!("{product}_flat"), format!("{product}_split"));
        graph = graph
            .node("MatMul", &["x", weights], &flat, &[])
            .node("Reshape", &[&flat, "in_heads"], &split, &[])
            .node("Transpose", &[&split], product, &[("perm", &perm)]);
    }
    graph
        .node("MatMul", &["q", "k"], "products", &[])
        .floats("scale", &[], [SCALE])
        .node("Mul", &["products", "scale"], "scaled", &[])
        .node("Add", &["scaled", "penalty"], "scores", &[])
        .node("Softmax", &["scores"], "attention", &[("axis", &[-1])])
        .node("MatMul", &["attention", "v"], "context_in_heads", &[])
        .node("Transpose", &["context_in_heads"], "context_split", &[("perm", &[0, 2, 1, 3])])
        .node("Reshape", &["context_split", "in_one"], "context", &[])
        .node("Add", &["context", "x"], "sum", &[])
        .node("ReduceMean", &["sum"], "mean", &[("axes", &[-1])])
        .node("Sub", &["sum", "mean"], "centred", &[])
        .floats("two", &[], [2.0])
        .node("Pow", &["centred", "two"], "squares", &[])
        .node("ReduceMean", &["squares"], "variance", &[("axes", &[-1])])
        .floats("epsilon", &[], [EPSILON])
        .node("Add", &["variance", "epsilon"], "above_zero", &[])
        .node("Sqrt", &["above_zero"], "deviation", &[])
        .node("Div", &["centred", "deviation"], "last_hidden_state", &[])
        .output("last_hidden_state", &[Some(1), None, Some(8)])
        .file()
}

/// The same by its formulas, and the mean over all tokens.
fn layer_by_hand(ids: &[usize]) -> Vec<f32> {
    let x: Vec<Vec<f32>> = ids
        .iter()
        .enumerate()
        .map(|(position, id)| (0..8).map(|axis| vectors()[*id][axis] + place(position, axis)).collect())
        .collect();
    let times = |matrix: usize| -> Vec<Vec<f32>> {
        let row = |x: &Vec<f32>| {
            (0..8).map(|to| (0..8).map(|from| x[from] * weight(matrix, from, to)).sum()).collect()
        };
        x.iter().map(row).collect()
    };
    let (q, k, v) = (times(0), times(1), times(2));
    let mut mean = vec![0.0; 8];
    for (token, query) in q.iter().enumerate() {
        let attended = |head: std::ops::Range<usize>| -> Vec<f32> {
            let product = |key: &Vec<f32>| head.clone().map(|axis| query[axis] * key[axis]).sum::<f32>();
            let powers: Vec<f32> = k.iter().map(|key| (product(key) * SCALE).exp()).collect();
            let total: f32 = powers.iter().sum();
            head.clone()
                .map(|axis| powers.iter().zip(&v).map(|(power, v)| power / total * v[axis]).sum())
                .collect()
        };
        let size = 8 / HEADS;
        let context = (0..HEADS).flat_map(|head| attended(head * size..(head + 1) * size));
        let sum: Vec<f32> = context.zip(&x[token]).map(|(context, x)| context + x).collect();
        let middle = sum.iter().sum::<f32>() / 8.0;
        let variance = sum.iter().map(|value| (value - middle).powi(2)).sum::<f32>() / 8.0;
        for (mean, value) in mean.iter_mut().zip(&sum) {
            *mean += (value - middle) / (variance + EPSILON).sqrt() / ids.len() as f32;
        }
    }
    mean
}

#[test]
fn a_text_longer_than_the_model_reads_is_cut_or_embedded_in_chunks() {
    let directory = Directory::with_model(&word_model());
    directory.write(
        "tiny/tokenizer.json",
        tokenizer(json!({ "direction": "Right", "max_length": 6, "strategy": "LongestFirst", "stride": 0 })),
    );
    let provider = open(&directory);
    assert_eq!(provider.max_tokens(), 6);
    let text = "ferry sails monday island. bakery opens bread street.";
    let half = 0.5;
    assert_eq!(provider.embed(text).unwrap().vector(), [half, half, half, half, 0.0, 0.0, 0.0, 0.0]);
    let strategy = ChunkingStrategy { max_tokens: 100, overlap: 0, mode: ChunkMode::FixedTokens };
    // Four tokens beside the model's own two.
    let chunks = provider.chunks(text, &strategy);
    assert_eq!(chunks, ["ferry sails monday island", ". bakery opens bread ", "street."]);
    let whole = provider.embed_document(text, &strategy).unwrap();
    assert!((whole.l2_norm() - 1.0).abs() < 1e-6);
    assert!(whole.vector().iter().all(|value| *value > 0.0), "every part counts: {whole:?}");
    assert_eq!(provider.embed_document("ferry", &strategy).unwrap(), provider.embed("ferry").unwrap());
}

#[test]
fn a_prefix_stands_before_every_text() {
    let directory = Directory::with_model(&word_model());
    let options = ModelOptions { prefix: "bread ".to_owned(), ..ModelOptions::default() };
    let provider = LocalProvider::open(&directory.model(), options).unwrap();
    assert_eq!(provider.embed("bread").unwrap().vector()[6], 1.0);
    assert!(provider.embed("ferry").unwrap().vector()[6] > 0.7);
}

#[test]
fn a_directory_that_is_no_model_is_refused_by_name() {
    let directory = Directory::new();
    let open =
        |directory: &Directory| LocalProvider::open(&directory.model(), ModelOptions::default()).unwrap_err();
    assert!(matches!(open(&directory), Error::NotAModel { missing: "model.onnx", .. }));
    directory.write("tiny/model.onnx", word_model());
    assert!(matches!(open(&directory), Error::NotAModel { missing: "tokenizer.json", .. }));
    directory.write("tiny/tokenizer.json", "{}");
    assert!(matches!(open(&directory), Error::Tokenizer(_)));
    directory.write("tiny/tokenizer.json", tokenizer(json!(null)));
    directory.write("tiny/model.onnx", b"no model at all");
    assert!(matches!(open(&directory), Error::Model(_)));
    let unknown =
        lookup().input("pixel_values", DataType::Float).output("looked_up", &[Some(1), None, Some(8)]);
    directory.write("tiny/model.onnx", unknown.file());
    let refused = open(&directory);
    assert!(matches!(&refused, Error::UnknownInput { name } if name == "pixel_values"), "{refused}");
    let ranks = lookup().integers("zero", &[1], [0]).node("Unsqueeze", &["looked_up", "zero"], "ranks", &[]);
    let ranks = ranks.output("ranks", &[Some(1), Some(1), None, Some(8)]);
    directory.write("tiny/model.onnx", ranks.file());
    assert!(open(&directory).to_string().contains("shape [1, 1, 2, 8]"), "{}", open(&directory));
}

#[test]
fn a_limit_without_room_for_a_word_is_refused() {
    let directory = Directory::with_model(&word_model());
    for limit in [0, 1, 2] {
        let options = ModelOptions { max_tokens: Some(limit), ..ModelOptions::default() };
        let refused = LocalProvider::open(&directory.model(), options);
        assert!(matches!(refused, Err(Error::TokenLimit { own: 2, .. })), "{refused:?}");
    }
}

fn judged(id: &str, verdict: &str, title: &str, body: &str) -> String {
    json!({
        "id": id, "verdict": verdict, "related": [], "flags": [],
        "article": { "id": id, "title": title, "body": body }
    })
    .to_string()
}

fn related(line: &str) -> Value {
    serde_json::from_str::<Value>(line).unwrap()["related"].clone()
}

#[test]
fn a_translation_gets_the_relation_and_nothing_else_changes() {
    let directory = Directory::with_model(&word_model());
    let provider = open(&directory);
    // Numbers, spaces and order as `samestory file` or anybody wrote them.
    let lines = [
        judged("en-1", "unique", "Ferry", FERRY),
        judged("xx-1", "unique", "Bakery", BAKERY),
        format!(
            r#"{{"id":"de-1", "verdict":"unique","similarity":0.10,"related":[ {{"id":"xx-1","relation":"follow-up","similarity":0.20}} ],"n":12345678901234567890123,"article":{{"title":"Fähre","text":"<p>{FAEHRE}</p>","content_type":"text/html"}}}}"#
        ),
        judged("en-2", "near-duplicate", "Ferry", FERRY),
        judged("no-1", "unique", "", "  "),
        judged("xx-2", "unique", "Bäckerei", "Bäckerei öffnet: Brot, Straße"),
    ];
    let input = lines.join("\n");
    let mut output = Vec::new();
    let counts = relate(&provider, input.as_bytes(), &mut output, &RelateOptions::default()).unwrap();
    assert_eq!(counts, Counts { lines: 6, embedded: 4, skipped: 1, related: 2 });
    let output = String::from_utf8(output).unwrap();
    let written: Vec<&str> = output.lines().collect();
    for same in [0, 1, 3, 4] {
        assert_eq!(written[same], lines[same]);
    }
    let found = related(written[2]);
    assert_eq!(found[0], json!({ "id": "xx-1", "relation": "follow-up", "similarity": 0.2 }));
    assert_eq!((&found[1]["id"], &found[1]["relation"]), (&json!("en-1"), &json!("same-story")));
    assert_eq!(found[1]["similarity"], 1.0);
    assert!(
        written[2]
            .starts_with(r#"{"id":"de-1","verdict":"unique","similarity":0.10,"related":[ {"id":"xx-1","#)
    );
    assert!(written[2].contains(r#""n":12345678901234567890123,"#), "{}", written[2]);
    assert_eq!(related(written[5])[0]["id"], "xx-1");
}

#[test]
fn the_closest_come_first_and_only_as_many_as_asked_for() {
    let directory = Directory::with_model(&word_model());
    let provider = open(&directory);
    let lines = [
        judged("far", "unique", "", "ferry sails monday bread"),
        judged("near", "unique", "", "ferry sails monday island bread"),
        judged("same", "unique", "", "ferry sails monday island"),
        judged("also", "unique", "", "boat runs montag insel"),
    ];
    let run = |options: RelateOptions| {
        let mut output = Vec::new();
        relate(&provider, lines.join("\n").as_bytes(), &mut output, &options).unwrap();
        let found = related(String::from_utf8(output).unwrap().lines().last().unwrap());
        let ids = found.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<String>>()
    };
    let all = RelateOptions { min_similarity: 0.7, ..RelateOptions::default() };
    assert_eq!(run(all.clone()), ["same", "near", "far"]);
    assert_eq!(run(RelateOptions { most: 2, ..all.clone() }), ["same", "near"]);
    assert_eq!(run(RelateOptions { window: 1, ..all.clone() }), ["same"]);
    assert_eq!(run(RelateOptions { min_similarity: 0.8, ..all }), ["same", "near"]);
}

#[test]
fn an_id_that_comes_again_replaces_its_text() {
    let directory = Directory::with_model(&word_model());
    let provider = open(&directory);
    let lines = [
        judged("a", "unique", "", FERRY),
        judged("a", "unique", "", BAKERY),
        judged("b", "unique", "", FAEHRE),
        judged("a", "exact-duplicate", "", FERRY),
        judged("c", "unique", "", "bakery bread opens street"),
    ];
    let mut output = Vec::new();
    let counts =
        relate(&provider, lines.join("\n").as_bytes(), &mut output, &RelateOptions::default()).unwrap();
    assert_eq!((counts.embedded, counts.related), (4, 0));
    assert_eq!(String::from_utf8(output).unwrap(), lines.join("\n"));
}

#[test]
fn lines_that_samestory_did_not_write_are_refused_with_their_number() {
    let directory = Directory::with_model(&word_model());
    let provider = open(&directory);
    let first = judged("a", "unique", "", FERRY);
    for (second, message) in [
        ("not json", "line 2 is not a judged article: "),
        ("[1]", "line 2 is not a judged article: "),
        (r#"{"id":"b"}"#, "line 2 is not a judged article: it has no verdict"),
        (r#"{"id":"b","verdict":"unique"}"#, "line 2 is not a judged article: it has no article"),
        (r#"{"id":7,"verdict":"unique"}"#, "line 2 is not a judged article: id: "),
    ] {
        let input = format!("{first}\n{second}\n");
        let refused = relate(&provider, input.as_bytes(), Vec::new(), &RelateOptions::default()).unwrap_err();
        assert!(refused.to_string().starts_with(message), "{refused}");
    }
}

fn program(directory: &Directory, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samestory-semantic"));
    command.current_dir(directory).args(args).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn the_program_compares_two_files_and_gives_no_verdict() {
    let directory = Directory::with_model(&word_model());
    directory.write("a.txt", FERRY);
    directory.write("b.html", format!("<html><body><p>{FAEHRE}</p><script>bread</script></body></html>"));
    directory.write("c.txt", BAKERY);
    let found = program(&directory, &["compare", "a.txt", "b.html", "--model", "tiny", "--format", "json"]);
    let answer: Value = serde_json::from_str(stdout(&found)).unwrap();
    assert_eq!(answer, json!({ "same_story": true, "similarity": 1.0, "model": "tiny", "dimension": 8 }));
    let found = program(&directory, &["compare", "a.txt", "c.txt", "--model", "tiny", "--exit-code"]);
    assert_eq!(found.status.code(), Some(3));
    assert!(stdout(&found).starts_with("a.txt and c.txt do not tell the same story.\n"), "{found:?}");
    assert!(stdout(&found).contains("This is no verdict"), "{found:?}");
    let found = program(&directory, &["compare", "a.txt", "c.txt", "--model", "elsewhere"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(str::from_utf8(&found.stderr).unwrap().contains("elsewhere has no model.onnx"), "{found:?}");
}

#[test]
fn the_program_relates_a_tagged_file_and_overwrites_nothing() {
    let directory = Directory::with_model(&word_model());
    let lines = [judged("en-1", "unique", "", FERRY), judged("de-1", "unique", "", FAEHRE)];
    directory.write("tagged.ndjson", lines.join("\n") + "\n");
    let args = ["related", "tagged.ndjson", "--model", "tiny", "--output", "related.ndjson"];
    let found = program(&directory, &args);
    assert!(found.status.success(), "{found:?}");
    let said = "1 of 2 unique articles tell the story of an earlier one; 0 without text\n";
    assert_eq!(str::from_utf8(&found.stderr).unwrap(), said);
    let written = fs::read_to_string(directory.0.join("related.ndjson")).unwrap();
    assert_eq!(related(written.lines().last().unwrap())[0]["relation"], "same-story");
    let again = program(&directory, &args);
    assert_eq!(again.status.code(), Some(1));
    assert!(str::from_utf8(&again.stderr).unwrap().contains("cannot create related.ndjson"), "{again:?}");
    assert_eq!(fs::read_to_string(directory.0.join("related.ndjson")).unwrap(), written);
}
