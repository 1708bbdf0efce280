//! One line of JSON per article: a hash of its text, under the name of its kind.

use samestory::compat::txtfp::{
    self, HashFamily, MinHashFingerprinter, SimHashFingerprinter, Tokenizer, UnknownTokenizer, Weighting,
};
use samestory::compat::{fnv_minhash, recap, simhash, tlsh};
use serde_json::{Value, json};

use super::{FamilyName, MinhashKind, SimhashKind};

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TokenWeights {
    /// Each occurrence of a token votes
    Tf,
    /// Each token votes once
    Uniform,
}

type Hash = Box<dyn Fn(&str) -> Result<Value, String>>;

/// Computes one kind of hash.
pub(super) struct Hasher {
    name: &'static str,
    /// What identifies the kind beside its name: algorithm and config hash.
    about: Value,
    hash: Hash,
}

impl Hasher {
    pub(super) fn simhash(
        kind: SimhashKind,
        weights: TokenWeights,
        family: FamilyName,
        tokenizer: Option<&str>,
    ) -> Result<Hasher, UnknownTokenizer> {
        let fixed = |hash: fn(&str) -> String, algorithm: &str| Hasher {
            name: "simHash",
            about: json!({ "algorithm": algorithm }),
            hash: Box::new(move |text| Ok(hash(text).into())),
        };
        Ok(match kind {
            SimhashKind::Ascii => fixed(simhash::compute_simhash, "simhash-fnv"),
            SimhashKind::Unicode => fixed(simhash::compute_simhash_unicode, "simhash-fnv-unicode"),
            SimhashKind::Txtfp => {
                let weighting = match weights {
                    TokenWeights::Tf => Weighting::Tf,
                    TokenWeights::Uniform => Weighting::Uniform,
                };
                let tokenizer = txtfp::tokenizer(tokenizer.unwrap_or("word-uax29"))?;
                let hasher = SimHashFingerprinter::new(tokenizer)
                    .with_hasher(HashFamily::from(family))
                    .with_weighting(weighting);
                Hasher {
                    name: "simHash",
                    about: json!(hasher.metadata()),
                    hash: Box::new(move |text| {
                        let hash = hasher.fingerprint(text).map_err(|error| error.to_string())?;
                        Ok(format!("{:016x}", hash.bits()).into())
                    }),
                }
            }
        })
    }

    pub(super) fn minhash(
        kind: MinhashKind,
        lanes: &str,
        family: FamilyName,
        tokenizer: Option<&str>,
    ) -> Result<Hasher, UnknownTokenizer> {
        let empty = || "the text has no words".to_owned();
        Ok(match kind {
            MinhashKind::Fnv => Hasher {
                name: "minHash",
                about: json!({ "algorithm": "minhash-fnv", "byte_size": fnv_minhash::SIGNATURE_BYTES }),
                hash: Box::new(move |text| {
                    let signature = fnv_minhash::compute_minhash(text).ok_or_else(empty)?;
                    Ok(hex::encode(signature.to_bytes()).into())
                }),
            },
            MinhashKind::Characters => Hasher {
                name: "minHash",
                about: json!({ "algorithm": "minhash-characters" }),
                hash: Box::new(|text| Ok(hex::encode(recap::signature(text).to_bytes()).into())),
            },
            MinhashKind::Txtfp => {
                let tokenizer = txtfp::tokenizer(tokenizer.unwrap_or("shingle-k=3/word-uax29"))?;
                match lanes {
                    "64" => signatures::<64>(tokenizer, family),
                    "256" => signatures::<256>(tokenizer, family),
                    _ => signatures::<128>(tokenizer, family),
                }
            }
        })
    }

    pub(super) fn tlsh() -> Hasher {
        Hasher {
            name: "tlsh",
            about: json!({ "algorithm": "tlsh-128-1" }),
            hash: Box::new(|text| {
                tlsh::digest_text(text).map(Value::from).map_err(|error| error.to_string())
            }),
        }
    }

    /// `{"id", NAME, …}`; a text that has no hash has null, and `error` says why.
    pub(super) fn line(&self, id: &str, text: &str) -> Value {
        let mut line = json!({ "id": id });
        match (self.hash)(text) {
            Ok(hash) => line[self.name] = hash,
            Err(why) => {
                line[self.name] = Value::Null;
                line["error"] = why.into();
            }
        }
        if let Value::Object(about) = &self.about {
            for (key, value) in about {
                line[key] = value.clone();
            }
        }
        line
    }
}

fn signatures<const H: usize>(tokenizer: Box<dyn Tokenizer>, family: FamilyName) -> Hasher {
    let hasher = MinHashFingerprinter::<_, H>::new(tokenizer).with_hasher(HashFamily::from(family));
    Hasher {
        name: "minHash",
        about: json!(hasher.metadata()),
        hash: Box::new(move |text| {
            let signature = hasher.fingerprint(text).map_err(|error| error.to_string())?;
            Ok(hex::encode(signature.to_bytes()).into())
        }),
    }
}
