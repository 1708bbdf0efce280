//! Reads one text from a file or standard input, for `fingerprint` and `compare`. It reads at most `text.max_raw_bytes`, and its
//! errors say what to do.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use clap::Args;
use samestory::config::Config;
use samestory_engine::text;
use samestory_engine::text::Text;
use samestory_engine::text::markup::ContentType;

use super::Failure;

/// Arguments that say how to read a text.
#[derive(Args, Debug)]
pub(super) struct TextArgs {
    /// Language of the text as a BCP 47 tag, for example hi or zh-Hant [default: detected]
    #[arg(long, short, value_name = "TAG")]
    language: Option<String>,
    /// Content type [default: from the file name, else from the text]
    #[arg(long, value_name = "TYPE", value_parser = content_type)]
    content_type: Option<ContentType>,
}

fn content_type(value: &str) -> Result<ContentType, String> {
    ContentType::parse(value).ok_or_else(|| "use text/plain, text/html or text/markdown".to_owned())
}

/// Why an input cannot be read as text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("cannot read {name}")]
    Unreadable {
        name: String,
        #[source]
        error: io::Error,
    },
    #[error("{name} is a directory; name a file in it")]
    Directory { name: String },
    #[error(
        "{name} is not UTF-8: byte {at} cannot be decoded; convert it first, for example with iconv -t utf-8"
    )]
    NotUtf8 { name: String, at: usize },
    #[error("{name} is larger than {limit} bytes, the limit set by text.max_raw_bytes")]
    TooLong { name: String, limit: usize },
}

/// A text that was read.
pub(super) struct Input {
    /// The file's name, or `standard input`.
    pub(super) name: String,
    /// The text without markup.
    pub(super) plain: String,
    /// The normalised text.
    pub(super) text: Text,
}

impl TextArgs {
    /// Reads and normalises `file`; `-` is standard input.
    pub(super) fn read(&self, file: &Path, config: &Config) -> Result<Input, Failure> {
        let (name, body) = read(file, config.text.max_raw_bytes)?;
        let content_type = self.content_type.or_else(|| by_name(file));
        let too_large = |error| Failure::TooLarge { name: name.clone(), error };
        let plain = text::plain(&body, content_type, &config.text).map_err(too_large)?.into_owned();
        let text = text::prepare(&plain, Some(ContentType::Plain), self.language.as_deref(), &config.text)
            .map_err(too_large)?;
        Ok(Input { name, plain, text })
    }
}

fn by_name(file: &Path) -> Option<ContentType> {
    match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "html" | "htm" | "xhtml" => Some(ContentType::Html),
        "md" | "markdown" => Some(ContentType::Markdown),
        "txt" => Some(ContentType::Plain),
        _ => None,
    }
}

fn read(file: &Path, limit: usize) -> Result<(String, String), InputError> {
    let standard = file.as_os_str() == "-";
    let name = if standard { "standard input".to_owned() } else { file.display().to_string() };
    let unreadable = |error| InputError::Unreadable { name: name.clone(), error };
    if !standard && file.is_dir() {
        return Err(InputError::Directory { name });
    }
    let source: Box<dyn Read> =
        if standard { Box::new(io::stdin()) } else { Box::new(File::open(file).map_err(unreadable)?) };
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the input is too long without reading all of it.
    source.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > limit {
        return Err(InputError::TooLong { name, limit });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((name, text)),
        Err(error) => Err(InputError::NotUtf8 { name, at: error.utf8_error().valid_up_to() }),
    }
}
