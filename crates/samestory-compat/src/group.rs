//! Groups articles by SimHash: newest first, greedily, each group around one centre.
//!
//! Field names in JSON are those of the original:
//!
//! ```
//! use samestory_compat::group::{HashedArticle, group_articles_by_similarity};
//!
//! let articles: Vec<HashedArticle> = serde_json::from_str(
//!     r#"[{"id": "a", "simHash": "aaaaaaaaaaaaaaaa", "publishedAt": "2026-03-01T08:00:00Z"},
//!         {"id": "b", "simHash": "aaaaaaaaaaaaaaab", "publishedAt": "2026-03-02"}]"#,
//! )?;
//! let groups = serde_json::to_string(&group_articles_by_similarity(&articles))?;
//! assert_eq!(groups, r#"[{"id":"cluster-1","centerArticleId":"b","memberIds":["b","a"],"averageDistance":1.0}]"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize};

use super::simhash::{InvalidHash, MAX_DISTANCE, is_near_duplicate_within, parse};

/// The part of an article that grouping reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HashedArticle {
    /// Identifies the article in the result.
    pub id: String,
    /// For people; grouping ignores it.
    #[serde(default)]
    pub headline: String,
    /// Sixteen hex digits, as from [`compute_simhash`](super::simhash::compute_simhash).
    #[serde(rename = "simHash", alias = "simhash")]
    pub simhash: String,
    /// Milliseconds since the Unix epoch. In JSON also an ISO 8601 date, as parsed by [`parse_published`].
    #[serde(deserialize_with = "published")]
    pub published_at: i64,
    /// For people; grouping ignores it.
    #[serde(default)]
    pub source_domain: String,
}

/// The articles within the maximum distance of one centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArticleGroup {
    /// `cluster-1`, `cluster-2` and so on, in the order of their centres.
    pub id: String,
    /// The newest article of the group.
    pub center_article_id: String,
    /// The centre, then the others, newest first.
    pub member_ids: Vec<String>,
    /// Mean distance of the others from the centre; 0 if there are none.
    pub average_distance: f64,
}

/// A text that is not an ISO 8601 date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an ISO 8601 date such as 2026-03-01 or 2026-03-01T08:00:00Z")]
pub struct InvalidDate(pub String);

/// Parses an ISO 8601 date into milliseconds since the Unix epoch.
///
/// A date without a time is midnight in UTC, as in JavaScript. A time without an offset is UTC as well;
/// JavaScript would use the time zone of the machine, so that the same file would group differently on
/// another machine.
///
/// # Errors
///
/// [`InvalidDate`] if `date` is not one.
///
/// ```
/// use samestory_compat::group::parse_published;
///
/// assert_eq!(parse_published("2026-03-01"), Ok(1_772_323_200_000));
/// assert_eq!(parse_published("2026-03-01T02:00:00.250+02:00"), Ok(1_772_323_200_250));
/// assert!(parse_published("yesterday").is_err());
/// ```
pub fn parse_published(date: &str) -> Result<i64, InvalidDate> {
    let invalid = |_| InvalidDate(date.to_owned());
    let timestamp = match date.parse::<Timestamp>() {
        Ok(timestamp) => timestamp,
        Err(_) => {
            let civil: DateTime = date.parse().map_err(invalid)?;
            TimeZone::UTC.to_timestamp(civil).map_err(invalid)?
        }
    };
    Ok(timestamp.as_millisecond())
}

fn published<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Published {
        Milliseconds(i64),
        Date(String),
    }
    match Published::deserialize(deserializer)? {
        Published::Milliseconds(milliseconds) => Ok(milliseconds),
        Published::Date(date) => parse_published(&date).map_err(serde::de::Error::custom),
    }
}

/// True if the hashes of two articles are at most [`MAX_DISTANCE`] (3) apart.
///
/// # Errors
///
/// [`InvalidHash`] if either article's hash is not sixteen hex digits; hash its text again.
pub fn are_articles_similar(a: &HashedArticle, b: &HashedArticle) -> Result<bool, InvalidHash> {
    are_articles_similar_within(a, b, MAX_DISTANCE)
}

/// True if the hashes of two articles are at most `max_distance` apart.
///
/// # Errors
///
/// [`InvalidHash`] if either article's hash is not sixteen hex digits; hash its text again.
pub fn are_articles_similar_within(
    a: &HashedArticle,
    b: &HashedArticle,
    max_distance: u32,
) -> Result<bool, InvalidHash> {
    is_near_duplicate_within(&a.simhash, &b.simhash, max_distance)
}

/// Puts every article into exactly one group, within [`MAX_DISTANCE`] (3) of its centre.
///
/// See [`group_articles_by_similarity_within`].
pub fn group_articles_by_similarity(articles: &[HashedArticle]) -> Vec<ArticleGroup> {
    group_articles_by_similarity_within(articles, MAX_DISTANCE)
}

/// Puts every article into exactly one group.
///
/// The newest article without a group becomes a centre and takes every other within `max_distance`; articles
/// of the same instant go in input order. An article with an invalid hash gets a group of its own, so that
/// one bad row neither disappears nor spoils the batch. Each article is compared with each centre, so time
/// grows with articles × groups.
pub fn group_articles_by_similarity_within(
    articles: &[HashedArticle],
    max_distance: u32,
) -> Vec<ArticleGroup> {
    let mut left: Vec<_> = articles.iter().map(|article| (article, parse(&article.simhash).ok())).collect();
    left.sort_by_key(|(article, _)| std::cmp::Reverse(article.published_at));

    let mut groups = Vec::new();
    while let Some(&(center, center_hash)) = left.first() {
        let mut member_ids = vec![center.id.clone()];
        let mut total = 0;
        let mut later = Vec::with_capacity(left.len());
        for &(article, hash) in &left[1..] {
            match distance(center_hash, hash) {
                Some(distance) if distance <= max_distance => {
                    member_ids.push(article.id.clone());
                    total += distance;
                }
                _ => later.push((article, hash)),
            }
        }
        left = later;

        let others = member_ids.len() - 1;
        groups.push(ArticleGroup {
            id: format!("cluster-{}", groups.len() + 1),
            center_article_id: center.id.clone(),
            member_ids,
            average_distance: if others == 0 { 0.0 } else { f64::from(total) / others as f64 },
        });
    }
    groups
}

fn distance(a: Option<u64>, b: Option<u64>) -> Option<u32> {
    Some((a? ^ b?).count_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn article(id: &str, simhash: &str, published_at: i64) -> HashedArticle {
        HashedArticle {
            id: id.into(),
            headline: format!("Article {id}"),
            simhash: simhash.into(),
            published_at,
            source_domain: "example.com".into(),
        }
    }

    fn members(groups: &[ArticleGroup]) -> Vec<Vec<&str>> {
        groups.iter().map(|group| group.member_ids.iter().map(String::as_str).collect()).collect()
    }

    #[test]
    fn no_articles_make_no_groups() {
        assert_eq!(group_articles_by_similarity(&[]), []);
    }

    #[test]
    fn a_group_gathers_around_its_newest_article() {
        let articles = [
            article("a3", "ffffffffffffffff", 10),
            article("a2", "aaaaaaaaaaaaaaab", 11),
            article("a1", "aaaaaaaaaaaaaaaa", 12),
        ];
        let group = |id: &str, center: &str, members: &[&str], average_distance| ArticleGroup {
            id: id.into(),
            center_article_id: center.into(),
            member_ids: members.iter().map(|id| (*id).into()).collect(),
            average_distance,
        };
        assert_eq!(
            group_articles_by_similarity(&articles),
            [group("cluster-1", "a1", &["a1", "a2"], 1.0), group("cluster-2", "a3", &["a3"], 0.0)]
        );
    }

    #[test]
    fn the_average_leaves_the_centre_out() {
        let articles = [
            article("c", "0000000000000000", 3),
            article("d", "0000000000000001", 2),
            article("e", "0000000000000003", 1),
        ];
        assert_eq!(group_articles_by_similarity(&articles)[0].average_distance, 1.5);
    }

    #[test]
    fn similarity_is_not_transitive() {
        let articles = [
            article("a", "0000000000000000", 3),
            article("b", "0000000000000007", 2),
            article("c", "000000000000003f", 1),
        ];
        assert_eq!(members(&group_articles_by_similarity(&articles)), [vec!["a", "b"], vec!["c"]]);
    }

    #[test]
    fn articles_of_one_instant_keep_the_order_of_the_input() {
        let articles = ["x", "y", "z"].map(|id| article(id, "0000000000000000", 5));
        assert_eq!(members(&group_articles_by_similarity_within(&articles, 0)), [["x", "y", "z"]]);
    }

    #[test]
    fn an_article_with_an_invalid_hash_gets_its_own_group() {
        let articles = [
            article("ok", "0000000000000000", 4),
            article("bad", "not a hash", 3),
            article("worse", "not a hash", 2),
            article("fine", "0000000000000001", 1),
        ];
        let groups = group_articles_by_similarity_within(&articles, 64);
        assert_eq!(members(&groups), [vec!["ok", "fine"], vec!["bad"], vec!["worse"]]);
        assert_eq!(are_articles_similar_within(&articles[0], &articles[1], 64), Err(InvalidHash));
        assert_eq!(are_articles_similar(&articles[0], &articles[3]), Ok(true));
    }

    #[test]
    fn one_id_twice_is_still_two_articles() {
        let articles = [article("a", "0000000000000000", 2), article("a", "ffffffffffffffff", 1)];
        assert_eq!(members(&group_articles_by_similarity(&articles)), [["a"], ["a"]]);
    }

    #[test]
    fn dates_come_as_numbers_or_in_iso_form() {
        let read = |date: &str| {
            let line = format!(r#"{{"id": "a", "simHash": "", "publishedAt": {date}}}"#);
            serde_json::from_str::<HashedArticle>(&line).map(|article| article.published_at)
        };
        for date in [
            "1772323200000",
            r#""2026-03-01""#,
            r#""2026-03-01T00:00""#,
            r#""2026-03-01T00:00:00Z""#,
            r#""2026-03-01T00:00:00.000Z""#,
            r#""2026-02-28T19:00:00-05:00""#,
        ] {
            assert_eq!(read(date).unwrap(), 1_772_323_200_000, "{date}");
        }
        for date in [r#""""#, r#""soon""#, "true", r#""2026-02-30""#] {
            assert!(read(date).is_err(), "{date}");
        }
    }
}
