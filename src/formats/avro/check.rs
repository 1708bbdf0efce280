//! Checks the field paths of the settings against a writer schema before any article is read. `samestory schemas check`
//! and the start of the stage use it. A path that cannot lead to a readable value is reported with the most similar one
//! that can.

use std::fmt;

use crate::formats::fields::{Field, Fields, PathStep};

use super::schema::{Node, Schema};

/// A field that a schema does not provide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmappedField {
    /// The field of ours.
    pub field: Field,
    /// The path in the settings; `None` if the usual names were tried.
    pub path: Option<String>,
    /// Why it cannot be read.
    pub why: String,
    /// The most similar readable path.
    pub nearest: Option<String>,
}

impl fmt::Display for UnmappedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "input.fields.{}", self.field)?;
        match &self.path {
            Some(path) => write!(f, " = \"{path}\": {}", self.why)?,
            None => write!(f, " is not set: {}", self.why)?,
        }
        match &self.nearest {
            Some(nearest) => write!(f, "; the nearest is \"{nearest}\""),
            None => Ok(()),
        }
    }
}

/// Most paths of a schema that are compared, and their greatest depth: enough for real schemas, and a bound for
/// recursive ones.
const PATHS: usize = 4000;
const DEEPEST: usize = 8;

impl Schema {
    /// The fields that this schema does not provide under the paths of the settings.
    pub fn misfits(&self, fields: &Fields) -> Vec<UnmappedField> {
        let mut found = Vec::new();
        let mut own = Vec::new();
        for (field, path, steps) in fields.paths() {
            own.push(field);
            if path.starts_with('$') {
                continue;
            }
            let why = match self.follow(steps) {
                None => "the schema has no such field",
                Some(ends) if !ends.iter().any(|&end| self.is_readable(end, field)) => {
                    "its type cannot be read as this field"
                }
                Some(_) => continue,
            };
            let nearest = self.nearest(path, field);
            found.push(UnmappedField { field, path: Some(path.to_owned()), why: why.into(), nearest });
        }
        // The id may be the record's key, but the body must be a field or a constant.
        let names = fields.names(Field::Body);
        if !own.contains(&Field::Body) && !names.iter().any(|name| name.starts_with('=')) {
            let has = |name: &&str| {
                let steps: Vec<PathStep> =
                    name.split('.').map(|name| PathStep::Member(name.to_owned())).collect();
                self.ends(&steps, true).iter().any(|&end| self.is_readable(end, Field::Body))
            };
            if !names.iter().any(has) {
                let why = "none of its usual names is in the schema".into();
                let nearest = self.nearest("body", Field::Body);
                found.push(UnmappedField { field: Field::Body, path: None, why, nearest });
            }
        }
        found
    }

    fn follow(&self, steps: &[PathStep]) -> Option<Vec<usize>> {
        Some(self.ends(steps, false)).filter(|ends| !ends.is_empty())
    }

    /// The nodes where a path may end.
    fn ends(&self, steps: &[PathStep], loose: bool) -> Vec<usize> {
        let mut here = vec![self.root()];
        for (at, step) in steps.iter().enumerate() {
            let variants: Vec<usize> = here.iter().flat_map(|&node| self.variants(node)).collect();
            here = match step {
                PathStep::Member(name) => {
                    variants.iter().filter_map(|&node| self.member(node, name, loose)).collect()
                }
                PathStep::Each => variants.iter().filter_map(|&node| self.items(node)).collect(),
            };
            // The values of a list are joined, so several routes may end at the same node.
            if at + 1 == steps.len() {
                here.sort_unstable();
                here.dedup();
            }
        }
        here
    }

    fn variants(&self, node: usize) -> Vec<usize> {
        match self.node(node) {
            Node::Union(variants) => variants.clone(),
            _ => vec![node],
        }
    }

    fn items(&self, node: usize) -> Option<usize> {
        match self.node(node) {
            Node::Array(items) => Some(*items),
            _ => None,
        }
    }

    fn member(&self, node: usize, name: &str, loose: bool) -> Option<usize> {
        let is = |other: &String| match loose {
            true => crate::formats::fields::spelled_alike(other, name),
            false => other == name,
        };
        match self.node(node) {
            Node::Record(fields) => {
                let named = fields.iter().find(|field| is(&field.name));
                let named = named.or_else(|| fields.iter().find(|field| field.aliases.iter().any(is)));
                named.map(|field| field.node)
            }
            // A map may have any key.
            Node::Map(values) => Some(*values),
            _ => None,
        }
    }

    fn is_readable(&self, node: usize, field: Field) -> bool {
        self.variants(node).iter().any(|&node| match self.node(node) {
            Node::Text | Node::Bytes | Node::Fixed(_) | Node::Enum(_) => true,
            Node::Bool => field == Field::Deleted,
            Node::Int | Node::Long => !matches!(field, Field::Body | Field::Deleted),
            Node::Float | Node::Double => !matches!(field, Field::Body | Field::Deleted | Field::Id),
            Node::Time(_) | Node::Day | Node::Uuid => !matches!(field, Field::Body | Field::Deleted),
            Node::Array(items) => field == Field::Body && self.is_readable(*items, Field::Title),
            Node::Null | Node::Union(_) | Node::Opaque(_) | Node::Map(_) | Node::Record(_) => false,
        })
    }

    /// The readable path that is spelled most like this one. Similar last names count as nearly equal.
    fn nearest(&self, path: &str, field: Field) -> Option<String> {
        let mut paths = Vec::new();
        self.readable_paths(self.root(), String::new(), field, DEEPEST, &mut paths);
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().trim_end_matches("[]").to_owned();
        let wanted = last(path);
        let far = |other: &String| {
            let spelled = distance(other, path).min(distance(&last(other), &wanted) + 1);
            // A name like that of the field is a hint as well.
            (spelled.min(distance(&last(other), field.name()) + 2), other.len())
        };
        paths.into_iter().min_by_key(far).filter(|nearest| far(nearest).0 <= wanted.len().max(4))
    }

    fn readable_paths(&self, node: usize, path: String, field: Field, deep: usize, out: &mut Vec<String>) {
        if out.len() >= PATHS || deep == 0 {
            return;
        }
        if !path.is_empty() && self.is_readable(node, field) {
            out.push(path.clone());
        }
        for node in self.variants(node) {
            match self.node(node) {
                Node::Record(fields) => {
                    for inner in fields {
                        let name = &inner.name;
                        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        self.readable_paths(inner.node, path, field, deep - 1, out);
                    }
                }
                Node::Array(items) => {
                    self.readable_paths(*items, format!("{path}[]"), field, deep - 1, out);
                }
                _ => {}
            }
        }
    }
}

/// Edit distance, of the first 200 characters: names come from a schema that someone else wrote.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|name| name.chars().take(200).collect::<String>());
    strsim::levenshtein(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRAWL: &str = r#"{"type":"record","name":"Crawl","fields":[
        {"name":"article_id","type":"long"},
        {"name":"content","type":["null",{"type":"record","name":"Content","fields":[
            {"name":"text","type":["null","string"]},
            {"name":"paragraphs","type":{"type":"array","items":{"type":"record","name":"P","fields":[{"name":"t","type":"string"}]}}}]}]},
        {"name":"crawled","type":{"type":"long","logicalType":"timestamp-micros"}, "aliases": ["fetch_time"]},
        {"name":"extra","type":{"type":"map","values":"string"}}]}"#;

    fn misfits(paths: &[(Field, &str)]) -> Vec<String> {
        let fields =
            paths.iter().fold(Fields::default(), |all, (field, path)| all.with(*field, path).unwrap());
        Schema::parse(CRAWL, &[]).unwrap().misfits(&fields).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_that_exist_are_accepted() {
        let none: [&str; 0] = [];
        assert_eq!(
            misfits(&[
                (Field::Id, "article_id"),
                (Field::Body, "content.text"),
                (Field::Body, "content.paragraphs[].t"),
                (Field::FetchedAt, "fetch_time"),
                (Field::Title, "extra.anything"),
                (Field::Language, "$header.lang"),
                (Field::Host, "=wire.example"),
            ]),
            none
        );
        assert_eq!(misfits(&[]), none, "content.text is a usual name");
    }

    #[test]
    fn a_path_that_cannot_exist_is_reported_with_the_nearest_one() {
        let message = |field, path| misfits(&[(Field::Body, "content.text"), (field, path)]).join("\n");
        assert_eq!(
            message(Field::Body, "content.txt"),
            "input.fields.body = \"content.txt\": the schema has no such field; the nearest is \"content.text\""
        );
        assert!(message(Field::Body, "text").ends_with("the nearest is \"content.text\""));
        assert!(message(Field::Id, "articleId").ends_with("the nearest is \"article_id\""));
        assert!(message(Field::FetchedAt, "crawled_at").ends_with("the nearest is \"crawled\""));
        let record = message(Field::Body, "content");
        assert!(record.contains("cannot be read") && record.contains("content.text"), "{record}");
        assert!(message(Field::Title, "content.paragraphs[]").contains("cannot be read"));
        assert!(message(Field::Title, "article_id[]").contains("no such field"));
    }
}
