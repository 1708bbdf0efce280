//! Models of a few hundred bytes, written here as ONNX files, and a tokeniser of a few words: what an embedding must be can be
//! computed by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use prost::Message;
use serde_json::json;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto, attribute_proto::AttributeType, type_proto,
};

/// Words by meaning: those of one row are translations or paraphrases of each other.
pub(crate) const MEANINGS: [&[&str]; 8] = [
    &["ferry", "fähre", "boat"],
    &["sails", "fährt", "runs"],
    &["monday", "montag"],
    &["island", "insel"],
    &["bakery", "bäckerei"],
    &["opens", "öffnet"],
    &["bread", "brot"],
    &["street", "straße"],
];

/// The tokens before the words.
const OWN: [&str; 3] = ["[UNK]", "[CLS]", "[SEP]"];

pub(crate) fn vocabulary() -> Vec<&'static str> {
    OWN.into_iter().chain(MEANINGS.into_iter().flatten().copied()).collect()
}

/// The vector of each token: its meaning's axis. Tokens without a meaning have zeros.
pub(crate) fn vectors() -> Vec<[f32; 8]> {
    let mut vectors = vec![[0.0; 8]; OWN.len()];
    for (axis, words) in MEANINGS.iter().enumerate() {
        for _ in *words {
            let mut vector = [0.0; 8];
            vector[axis] = 1.0;
            vectors.push(vector);
        }
    }
    vectors
}

/// A directory that is gone when the test ends.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("samestory-semantic-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A model directory with this model and the tokeniser of the words above.
    pub(crate) fn with_model(model: &[u8]) -> Directory {
        let directory = Directory::new();
        directory.write("tiny/model.onnx", model);
        directory.write("tiny/tokenizer.json", tokenizer(json!(null)));
        directory
    }

    pub(crate) fn model(&self) -> PathBuf {
        self.0.join("tiny")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// A `tokenizer.json`: lower case, words, `[CLS]` before and `[SEP]` after, and padding to 16 as exporters often leave it.
pub(crate) fn tokenizer(truncation: serde_json::Value) -> String {
    let ids: serde_json::Map<String, serde_json::Value> =
        vocabulary().into_iter().enumerate().map(|(id, word)| (word.to_owned(), json!(id))).collect();
    let special = |id: usize| json!({ "id": OWN[id], "ids": [id], "tokens": [OWN[id]] });
    let one = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let text = |type_id: u32, name: &str| json!({ "Sequence": { "id": name, "type_id": type_id } });
    json!({
        "version": "1.0",
        "truncation": truncation,
        "padding": {
            "strategy": { "Fixed": 16 }, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[UNK]"
        },
        "added_tokens": [],
        "normalizer": { "type": "Lowercase" },
        "pre_tokenizer": { "type": "Whitespace" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [one("[CLS]"), text(0, "A"), one("[SEP]")],
            "pair": [one("[CLS]"), text(0, "A"), one("[SEP]"), text(1, "B"), one("[SEP]")],
            "special_tokens": { "[CLS]": special(1), "[SEP]": special(2) }
        },
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": ids, "unk_token": "[UNK]" }
    })
    .to_string()
}

/// An ONNX graph in the making.
#[derive(Default)]
pub(crate) struct Graph(GraphProto);

fn of_type(number: DataType, shape: &[Option<i64>]) -> Option<TypeProto> {
    let dim = shape.iter().map(|size| Dimension {
        value: Some(match size {
            Some(size) => dimension::Value::DimValue(*size),
            None => dimension::Value::DimParam("sequence_length".to_owned()),
        }),
        ..Dimension::default()
    });
    let shape = TensorShapeProto { dim: dim.collect() };
    let tensor = type_proto::Tensor { elem_type: number as i32, shape: Some(shape) };
    Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() })
}

impl Graph {
    pub(crate) fn input(mut self, name: &str, number: DataType) -> Graph {
        self.0.input.push(ValueInfoProto {
            name: name.to_owned(),
            r#type: of_type(number, &[Some(1), None]),
            ..ValueInfoProto::default()
        });
        self
    }

    pub(crate) fn output(mut self, name: &str, shape: &[Option<i64>]) -> Graph {
        self.0.output.push(ValueInfoProto {
            name: name.to_owned(),
            r#type: of_type(DataType::Float, shape),
            ..ValueInfoProto::default()
        });
        self
    }

    pub(crate) fn floats(mut self, name: &str, dims: &[i64], values: impl IntoIterator<Item = f32>) -> Graph {
        self.0.initializer.push(TensorProto {
            name: name.to_owned(),
            dims: dims.to_vec(),
            data_type: DataType::Float as i32,
            float_data: values.into_iter().collect(),
            ..TensorProto::default()
        });
        self
    }

    pub(crate) fn integers(
        mut self,
        name: &str,
        dims: &[i64],
        values: impl IntoIterator<Item = i64>,
    ) -> Graph {
        self.0.initializer.push(TensorProto {
            name: name.to_owned(),
            dims: dims.to_vec(),
            data_type: DataType::Int64 as i32,
            int64_data: values.into_iter().collect(),
            ..TensorProto::default()
        });
        self
    }

    /// An operator with its inputs, its one output, and integers as attributes.
    pub(crate) fn node(
        mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, &[i64])],
    ) -> Graph {
        let attribute = attributes.iter().map(|(name, values)| {
            let single = matches!(values, [_]) && *name != "axes";
            AttributeProto {
                name: (*name).to_owned(),
                r#type: if single { AttributeType::Int } else { AttributeType::Ints } as i32,
                i: values[0],
                ints: if single { Vec::new() } else { values.to_vec() },
                ..AttributeProto::default()
            }
        });
        self.0.node.push(NodeProto {
            op_type: operator.to_owned(),
            name: format!("/{output}"),
            input: inputs.iter().map(|name| (*name).to_owned()).collect(),
            output: vec![output.to_owned()],
            attribute: attribute.collect(),
            ..NodeProto::default()
        });
        self
    }

    pub(crate) fn file(self) -> Vec<u8> {
        let opset = OperatorSetIdProto { domain: String::new(), version: 14 };
        let graph = GraphProto { name: "tiny".to_owned(), ..self.0 };
        ModelProto { ir_version: 8, opset_import: vec![opset], graph: Some(graph), ..ModelProto::default() }
            .encode_to_vec()
    }
}

/// The words' vectors, looked up.
pub(crate) fn lookup() -> Graph {
    let vectors = vectors();
    Graph::default()
        .input("input_ids", DataType::Int64)
        .floats("words", &[vectors.len() as i64, 8], vectors.into_iter().flatten())
        .node("Gather", &["words", "input_ids"], "looked_up", &[])
}

/// A model that gives the words' vectors as hidden states.
pub(crate) fn word_model() -> Vec<u8> {
    lookup()
        .input("attention_mask", DataType::Int64)
        .input("token_type_ids", DataType::Int64)
        .node("Identity", &["looked_up"], "last_hidden_state", &[])
        .output("last_hidden_state", &[Some(1), None, Some(8)])
        .file()
}
