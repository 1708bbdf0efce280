//! Where embeddings come from: a trait for any source, and the one that runs an ONNX model from a directory.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokenizers::{Tokenizer, TruncationParams};
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::{Factoid, ShapeFactoid};

use crate::chunk::{ChunkingStrategy, chunk, chunk_for_model};
use crate::embedding::normalize;
use crate::{Embedding, Error, Pooling};

/// Anything that turns a text into an embedding.
pub trait EmbeddingProvider {
    /// The embedding of a text of at most as many tokens as the model reads. The rest of a longer one is left out.
    ///
    /// # Errors
    /// The text has no tokens, or the model fails.
    fn embed(&self, text: &str) -> Result<Embedding, Error>;

    /// The name that its embeddings carry.
    fn model_id(&self) -> &str;

    /// How many numbers its embeddings have.
    fn dimension(&self) -> usize;

    /// Cuts a text into chunks that the model reads whole.
    fn chunks<'a>(&self, text: &'a str, strategy: &ChunkingStrategy) -> Vec<&'a str> {
        chunk_for_model(text, strategy)
    }

    /// The embedding of a text of any length: the mean of its chunks' directions.
    ///
    /// # Errors
    /// As [`EmbeddingProvider::embed`].
    fn embed_document(&self, text: &str, strategy: &ChunkingStrategy) -> Result<Embedding, Error> {
        let chunks = self.chunks(text, strategy);
        if let [] | [_] = chunks[..] {
            return self.embed(text);
        }
        let mut sum = vec![0.0_f32; self.dimension()];
        for part in chunks {
            let mut part = self.embed(part)?;
            part.normalize();
            if part.dim() != sum.len() {
                return Err(Error::DimensionMismatch { a: sum.len(), b: part.dim() });
            }
            for (sum, value) in sum.iter_mut().zip(part.vector()) {
                *sum += value;
            }
        }
        normalize(&mut sum);
        Embedding::with_model(sum, self.model_id())
    }
}

/// How a model is used, where its files do not say.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// The name that embeddings carry; otherwise that of the directory.
    pub model_id: Option<String>,
    /// The pooling; otherwise that of `1_Pooling/config.json`, or else [`Pooling::Mean`].
    pub pooling: Option<Pooling>,
    /// Put before each text, for example `query: ` for the E5 models.
    pub prefix: String,
    /// The longest text in tokens, with those that the model adds; otherwise what `tokenizer.json` says, or else 512.
    pub max_tokens: Option<usize>,
}

/// An ONNX model and its tokeniser, run in this process.
///
/// The model takes `input_ids`, and if it wants them `attention_mask` and `token_type_ids`, of shape [1, tokens]. It gives
/// `sentence_embedding`, `last_hidden_state`, `token_embeddings` or `pooler_output`, or else its first output counts: one
/// vector, or one per token, which are then pooled.
pub struct LocalProvider {
    model: Arc<TypedRunnableModel>,
    inputs: Vec<Input>,
    tokenizer: Tokenizer,
    model_id: String,
    pooling: Pooling,
    prefix: String,
    dimension: usize,
    max_tokens: usize,
}

/// An input of the model, and the type of its numbers.
struct Input {
    name: InputName,
    number: DatumType,
}

#[derive(Clone, Copy)]
enum InputName {
    Ids,
    Mask,
    Types,
}

/// The longest text of a model that does not say: that of BERT.
const MAX_TOKENS: usize = 512;

/// Outputs that hold an embedding, the best first.
const OUTPUTS: [&str; 4] = ["sentence_embedding", "last_hidden_state", "token_embeddings", "pooler_output"];

impl LocalProvider {
    /// Loads a model directory as the usual exporters write it: `model.onnx` or `onnx/model.onnx`, `tokenizer.json`, and
    /// perhaps `1_Pooling/config.json`.
    ///
    /// # Errors
    /// [`Error::NotAModel`] and [`Error::File`] for files; [`Error::Tokenizer`], [`Error::Model`] and [`Error::UnknownInput`] if
    /// they cannot be used.
    pub fn open(directory: &Path, mut options: ModelOptions) -> Result<LocalProvider, Error> {
        let found = |names: &[&str], missing| {
            let mut paths = names.iter().map(|name| directory.join(name));
            paths
                .find(|path| path.is_file())
                .ok_or_else(|| Error::NotAModel { directory: directory.to_owned(), missing })
        };
        let model = found(&["model.onnx", "onnx/model.onnx"], "model.onnx")?;
        let tokenizer = found(&["tokenizer.json"], "tokenizer.json")?;
        if options.pooling.is_none() {
            options.pooling = declared_pooling(&directory.join("1_Pooling/config.json"))?;
        }
        if options.model_id.is_none() {
            let whole = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
            options.model_id = whole.file_name().map(|name| name.to_string_lossy().into_owned());
        }
        LocalProvider::from_onnx(&model, &tokenizer, options)
    }

    /// Loads a model from its two files. Without [`ModelOptions::model_id`] it is called `local-onnx`.
    ///
    /// # Errors
    /// As [`LocalProvider::open`].
    pub fn from_onnx(model: &Path, tokenizer: &Path, options: ModelOptions) -> Result<LocalProvider, Error> {
        let mut tokenizer = Tokenizer::from_bytes(read(tokenizer)?).map_err(from_tokenizer)?;
        let declared = tokenizer.get_truncation().map(|truncation| truncation.max_length);
        let max_tokens = options.max_tokens.or(declared).unwrap_or(MAX_TOKENS);
        truncate(&mut tokenizer, max_tokens)?;
        let (model, inputs) = load(model)?;
        let mut provider = LocalProvider {
            model,
            inputs,
            tokenizer,
            model_id: options.model_id.unwrap_or_else(|| "local-onnx".to_owned()),
            pooling: options.pooling.unwrap_or(Pooling::Mean),
            prefix: options.prefix,
            dimension: 0,
            max_tokens,
        };
        // Only a run tells whether the model works, and how long its vectors are.
        provider.dimension = provider.run(&[0, 0], &[1, 1])?.len();
        Ok(provider)
    }

    /// The pooling in use.
    pub fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// The longest text, in tokens.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The tokens of a text by themselves, without those that the model adds.
    fn count(&self, text: &str) -> usize {
        // A text that cannot be tokenised is refused when it is embedded.
        self.tokenizer.encode_fast(text, false).map_or(0, |encoding| {
            encoding.get_ids().len()
                + encoding.get_overflowing().iter().map(|more| more.get_ids().len()).sum::<usize>()
        })
    }

    /// Runs the model on tokens and pools what it gives.
    fn run(&self, ids: &[i64], mask: &[i64]) -> Result<Vec<f32>, Error> {
        let types = vec![0_i64; ids.len()];
        let inputs = self.inputs.iter().map(|input| {
            let values = match input.name {
                InputName::Ids => ids,
                InputName::Mask => mask,
                InputName::Types => &types,
            };
            let tensor = Tensor::from_shape(&[1, values.len()], values)?;
            TractResult::Ok(tensor.cast_to_dt(input.number)?.into_owned().into())
        });
        let inputs = inputs.collect::<TractResult<TVec<TValue>>>().map_err(from_model)?;
        let outputs = self.model.run(inputs).map_err(from_model)?;
        let output = outputs.first().ok_or_else(|| Error::Model("it has no output".to_owned()))?;
        let output = output.cast_to::<f32>().map_err(from_model)?;
        let values = output.view();
        let values = values.as_slice::<f32>().map_err(from_model)?;
        match *output.shape() {
            [1, dimension] if dimension > 0 => {
                let mut vector = values.to_vec();
                if self.pooling.normalizes() {
                    normalize(&mut vector);
                }
                Ok(vector)
            }
            [1, _, dimension] => self.pooling.apply(values, dimension, Some(mask)),
            ref shape => Err(Error::Model(format!("its output has the shape {shape:?}"))),
        }
    }
}

impl EmbeddingProvider for LocalProvider {
    fn embed(&self, text: &str) -> Result<Embedding, Error> {
        let encoding = match self.prefix.is_empty() {
            true => self.tokenizer.encode_fast(text, true),
            false => self.tokenizer.encode_fast(format!("{}{text}", self.prefix), true),
        };
        let encoding = encoding.map_err(from_tokenizer)?;
        let wide = |numbers: &[u32]| numbers.iter().map(|number| i64::from(*number)).collect::<Vec<i64>>();
        let (ids, mask) = (wide(encoding.get_ids()), wide(encoding.get_attention_mask()));
        if ids.is_empty() {
            return Err(Error::NoTokens);
        }
        Embedding::with_model(self.run(&ids, &mask)?, self.model_id.as_str())
    }

    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn chunks<'a>(&self, text: &'a str, strategy: &ChunkingStrategy) -> Vec<&'a str> {
        let own = own_tokens(&self.tokenizer) + self.count(&self.prefix);
        let max_tokens = strategy.max_tokens.min(self.max_tokens.saturating_sub(own)).max(1);
        chunk(text, &ChunkingStrategy { max_tokens, ..*strategy }, &|part| self.count(part))
    }
}

impl std::fmt::Debug for LocalProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalProvider")
            .field("model_id", &self.model_id)
            .field("dimension", &self.dimension)
            .field("pooling", &self.pooling)
            .field("max_tokens", &self.max_tokens)
            .finish_non_exhaustive()
    }
}

/// Cuts texts at the limit. Padding, which exporters often leave in `tokenizer.json`, would only cost time.
fn truncate(tokenizer: &mut Tokenizer, max_tokens: usize) -> Result<(), Error> {
    tokenizer.with_padding(None);
    let own = own_tokens(tokenizer);
    // The tokeniser subtracts one from the other without a look.
    if max_tokens <= own {
        return Err(Error::TokenLimit { limit: max_tokens, own });
    }
    let truncation = TruncationParams { max_length: max_tokens, stride: 0, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(from_tokenizer)?;
    Ok(())
}

/// The tokens that the model adds to each text.
fn own_tokens(tokenizer: &Tokenizer) -> usize {
    tokenizer.get_post_processor().map_or(0, |processor| {
        use tokenizers::PostProcessor;
        processor.added_tokens(false)
    })
}

/// Loads a model for texts of any length, with the one output that holds the embedding.
fn load(path: &Path) -> Result<(Arc<TypedRunnableModel>, Vec<Input>), Error> {
    // By path, because large weights are in files of their own beside it. Opened here only for an error that names the file.
    fs::File::open(path).map_err(|error| Error::File { path: path.to_owned(), error })?;
    let mut model = tract_onnx::onnx().model_for_path(path).map_err(from_model)?;
    let tokens: TDim = model.symbols.sym("tokens").into();
    let mut inputs = Vec::new();
    let outlets = model.input_outlets().map_err(from_model)?.to_vec();
    for (number, outlet) in outlets.into_iter().enumerate() {
        let name = match model.node(outlet.node).name.as_str() {
            "input_ids" => InputName::Ids,
            "attention_mask" => InputName::Mask,
            "token_type_ids" => InputName::Types,
            name => return Err(Error::UnknownInput { name: name.to_owned() }),
        };
        let declared = model.input_fact(number).map_err(from_model)?.datum_type.concretize();
        let declared = declared.unwrap_or_else(i64::datum_type);
        let shape: ShapeFactoid = [TDim::from(1), tokens.clone()].into_iter().collect();
        model.set_input_fact(number, InferenceFact::dt_shape(declared, shape)).map_err(from_model)?;
        inputs.push(Input { name, number: declared });
    }
    let outlets = model.output_outlets().map_err(from_model)?.to_vec();
    let named = |name: &&str| outlets.iter().find(|outlet| model.outlet_label(**outlet) == Some(*name));
    let chosen = OUTPUTS.iter().find_map(named).or(outlets.first()).copied();
    let chosen = chosen.ok_or_else(|| Error::Model("it has no output".to_owned()))?;
    model.select_output_outlets(&[chosen]).map_err(from_model)?;
    let model = model.into_optimized().and_then(|model| model.into_runnable()).map_err(from_model)?;
    Ok((model, inputs))
}

/// The pooling that a model directory declares.
fn declared_pooling(path: &Path) -> Result<Option<Pooling>, Error> {
    if !path.is_file() {
        return Ok(None);
    }
    let bad = |error: serde_json::Error| Error::Model(format!("{}: {error}", path.display()));
    let config: serde_json::Value = serde_json::from_slice(&read(path)?).map_err(bad)?;
    let is = |mode: &str| config[mode] == true;
    Ok(if is("pooling_mode_cls_token") {
        Some(Pooling::Cls)
    } else if is("pooling_mode_max_tokens") {
        Some(Pooling::Max)
    } else if is("pooling_mode_mean_tokens") {
        Some(Pooling::Mean)
    } else {
        return Err(Error::Model(format!("{} names no known pooling; choose one", path.display())));
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| Error::File { path: path.to_owned(), error })
}

fn from_tokenizer(error: tokenizers::Error) -> Error {
    Error::Tokenizer(error.to_string())
}

/// The whole chain: the first link often says only which operator it was.
fn from_model(error: TractError) -> Error {
    Error::Model(format!("{error:#}"))
}
