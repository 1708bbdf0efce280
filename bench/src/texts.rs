//! Texts for the benchmark: real articles if the data directory exists, otherwise those of the demo.

use std::fs;
use std::path::{Path, PathBuf};

/// Articles of one language, cut to 400 words (1,000 characters in Japanese).
pub struct Set {
    pub language: &'static str,
    pub texts: Vec<String>,
}

impl Set {
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }

    pub fn mean_words(&self) -> usize {
        self.texts.iter().map(|text| text.split_whitespace().count()).sum::<usize>() / self.texts.len().max(1)
    }
}

/// English from Reuters and Wikinews, reduced to ASCII; the same with two curly quotes per text; Hindi;
/// Japanese.
pub fn sets() -> Result<Vec<Set>, Box<dyn std::error::Error>> {
    let english = words(load(&["reuters21578_en.ndjson", "wikinews_en_2020.ndjson"], "en")?, 400);
    let ascii: Vec<String> =
        english.into_iter().map(|text| text.chars().filter(char::is_ascii).collect()).collect();
    let curly = ascii.iter().map(|text| format!("“{}”", text)).collect();
    let hindi = words(load(&["bbc_hi.ndjson"], "hi")?, 400);
    let japanese = load(&["wikinews_ja.ndjson"], "ja")?;
    let japanese = japanese.into_iter().map(|text| text.chars().take(1000).collect::<String>());
    let japanese = japanese.filter(|text| text.chars().count() >= 400).take(1000).collect();
    Ok(vec![
        Set { language: "en", texts: ascii },
        Set { language: "en-curly", texts: curly },
        Set { language: "hi", texts: hindi },
        Set { language: "ja", texts: japanese },
    ])
}

fn words(texts: Vec<String>, count: usize) -> Vec<String> {
    // Join short articles and cut long ones, so that all texts have the same number of words.
    let mut result = Vec::new();
    let mut collected: Vec<String> = Vec::new();
    for word in texts.iter().flat_map(|text| text.split_inclusive(char::is_whitespace)) {
        collected.push(word.to_owned());
        if collected.len() == count {
            result.push(collected.concat());
            collected.clear();
        }
        if result.len() == 2000 {
            break;
        }
    }
    result
}

fn load(files: &[&str], language: &str) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data =
        std::env::var_os("SAMESTORY_DATA").map_or_else(|| here.join("../../shared/data"), PathBuf::from);
    let shared: Vec<PathBuf> =
        files.iter().map(|file| data.join(file)).filter(|file| file.exists()).collect();
    let files = if shared.is_empty() { vec![here.join("../demo/articles.ndjson")] } else { shared };
    let mut texts = Vec::new();
    for file in files {
        let content = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        for line in content.lines() {
            let article: serde_json::Value = serde_json::from_str(line)?;
            let tag = article.get("lang").or_else(|| article.get("language")).and_then(|tag| tag.as_str());
            if let (Some(tag), Some(body)) = (tag, article["body"].as_str())
                && tag == language
                && !body.is_empty()
            {
                texts.push(body.to_owned());
            }
        }
    }
    Ok(texts)
}
