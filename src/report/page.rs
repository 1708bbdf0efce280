//! Renders the HTML page: one self-contained file that loads nothing. Articles are in it as JSON (`data`), which `page.js` shows as
//! text. Its policy allows this style sheet and this script, known by their hashes, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use crate::files::Summary;
use crate::files::stage::InputSpec;
use crate::files::thousands;
use samestory_engine::model::ClusterId;

use super::pair::TextLimit;
use super::texts::ShownArticle;
use super::words::{escaped, headline, name};
use super::{About, ReportGroup, ReportPair, Side};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");
/// The SHA-256 hashes of the two as the policy wants them; a test computes them.
const STYLE_HASH: &str = "GjKABGgKE0GgVviJaCS6hYELewpd/tyvfeugs0Fgmzo=";
const SCRIPT_HASH: &str = "fx4XWuYIv6HiDpBw1MFw1U+p4B4IDg3dvy/5E5p+sn0=";

pub(super) struct HtmlPage<'a> {
    pub(super) summary: &'a Summary,
    pub(super) groups: &'a BTreeMap<ClusterId, ReportGroup>,
    pub(super) related: &'a [ReportPair],
    pub(super) related_total: u64,
    /// The pairs, by their order, whose texts are on the page.
    pub(super) shown: &'a BTreeSet<u64>,
    pub(super) texts: &'a BTreeMap<Side, ShownArticle>,
    pub(super) reading: &'a InputSpec,
    pub(super) about: &'a About,
}

impl HtmlPage<'_> {
    pub(super) fn render(&self) -> String {
        let mut html = String::new();
        // Writing to a string cannot fail.
        let _written = self.write(&mut html);
        html
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let total = self.summary.total();
        let copies = total.near + total.exact;
        writeln!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; \
             script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>samestory: {} articles, {copies} duplicates</title>\n<style>{STYLE}</style>\n</head>\n\
             <body>\n<div class=\"wrap\">\n<header>\n<h1>{}</h1>",
            total.articles(),
            headline(total.articles(), copies),
        )?;
        self.facts(out)?;
        out.push_str("</header>\n<main>\n");
        self.tiles(out)?;
        self.controls(out)?;
        let related_more = self.related_total - self.related.len() as u64;
        if related_more > 0 {
            writeln!(
                out,
                "<p class=\"note\">{} more related pairs are only in the output.</p>",
                thousands(related_more)
            )?;
        }
        out.push_str("</main>\n");
        self.footer(out)?;
        write!(
            out,
            "</div>\n<script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            self.data(),
        )
    }

    fn facts(&self, out: &mut String) -> fmt::Result {
        let total = self.summary.total();
        let share = (total.near + total.exact) as f64 * 100.0 / total.articles().max(1) as f64;
        if self.groups.is_empty() {
            return Ok(());
        }
        let largest = self.groups.values().filter_map(|group| Some(group.cluster.as_ref()?.size)).max();
        let groups = self.groups.len() as u64;
        writeln!(
            out,
            "<p class=\"lede\">{} {} of articles with the same text. {share:.1}% of the articles repeat another; the largest group has {}.</p>",
            thousands(groups),
            if groups == 1 { "group" } else { "groups" },
            thousands(largest.unwrap_or_default())
        )
    }

    fn tiles(&self, out: &mut String) -> fmt::Result {
        let (total, dead) = (self.summary.total(), self.summary.dead());
        out.push_str("<ul class=\"tiles\">\n");
        let tiles = [
            ("", total.articles(), "articles"),
            ("unique", total.unique, "unique"),
            ("near", total.near, "near-duplicates"),
            ("exact", total.exact, "exact duplicates"),
            ("", dead, "could not be judged"),
        ];
        for (class, count, label) in tiles {
            if count > 0 || label != "could not be judged" {
                writeln!(out, "<li class=\"{class}\"><b>{}</b> <span>{label}</span></li>", thousands(count))?;
            }
        }
        out.push_str("</ul>\n");
        if self.summary.judged_before > 0 {
            writeln!(
                out,
                "<p class=\"note\">This run resumed an earlier one: {} records were already judged and are not counted here.</p>",
                thousands(self.summary.judged_before)
            )?;
        }
        let mut languages: Vec<_> = self.summary.languages.iter().collect();
        if languages.len() > 1 {
            out.push_str("<details class=\"languages\"><summary>By language</summary>\n<table><tr><th scope=\"col\">language</th><th scope=\"col\">articles</th><th scope=\"col\">unique</th><th scope=\"col\">near</th><th scope=\"col\">exact</th></tr>\n");
            languages.sort_by_key(|(language, counts)| (std::cmp::Reverse(counts.articles()), **language));
            for &(&language, counts) in &languages {
                let cells = [counts.articles(), counts.unique, counts.near, counts.exact].map(thousands);
                writeln!(
                    out,
                    "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
                    name(language),
                    cells.join("</td><td>")
                )?;
            }
            out.push_str("</table></details>\n");
        }
        Ok(())
    }

    fn controls(&self, out: &mut String) -> fmt::Result {
        out.push_str("<noscript><p class=\"note\">This page needs JavaScript. Its script is part of the page; nothing is loaded.</p></noscript>\n<section id=\"controls\" aria-label=\"Search and filters\">\n");
        if !self.related.is_empty() {
            writeln!(
                out,
                "<div id=\"views\" class=\"views\"><button type=\"button\" data-view=\"groups\">Same text <span class=\"count\">{}</span></button><button type=\"button\" data-view=\"related\">Related, but not the same <span class=\"count\">{}</span></button></div>",
                thousands(self.groups.len() as u64),
                thousands(self.related.len() as u64)
            )?;
        }
        out.push_str(
            "<div class=\"bar\"><label>Search <input type=\"search\" id=\"search\" placeholder=\"headline or outlet\" autocomplete=\"off\"></label>\
             <label>Sort <select id=\"order\"><option value=\"size\">largest first</option><option value=\"doubt\">most doubtful first</option><option value=\"newest\">newest first</option><option value=\"oldest\">oldest first</option></select></label></div>\n\
             <fieldset><legend>Show</legend><div id=\"chips\" class=\"chips\"></div></fieldset>\n\
             <fieldset><legend>Language</legend><div id=\"tongues\" class=\"chips\"></div></fieldset>\n\
             </section>\n\
             <p id=\"status\" class=\"status\" role=\"status\"></p>\n\
             <div id=\"empty\" class=\"empty\" hidden><p id=\"none\"></p><button type=\"button\" id=\"clear\">Clear search and filters</button></div>\n\
             <table class=\"overview\"><thead><tr><th scope=\"col\">Headline</th><th scope=\"col\" class=\"n\">Articles</th><th scope=\"col\">First seen</th><th scope=\"col\">Last seen</th><th scope=\"col\">Outlets</th><th scope=\"col\" class=\"n\">Least similarity</th><th scope=\"col\">How</th></tr></thead><tbody id=\"rows\"></tbody></table>\n\
             <nav id=\"pages\" class=\"pages\" aria-label=\"Pages\" hidden><button type=\"button\" id=\"previous\">Previous</button><span id=\"page\"></span><button type=\"button\" id=\"next\">Next</button></nav>\n",
        );
        Ok(())
    }

    fn footer(&self, out: &mut String) -> fmt::Result {
        const NAMED: usize = 6;
        let sources = &self.reading.sources;
        let mut names: Vec<String> = sources
            .iter()
            .take(NAMED)
            .map(|source| match source.name().as_str() {
                "-" => "standard input".to_owned(),
                name => escaped(name, TextLimit::Title),
            })
            .collect();
        if sources.len() > NAMED {
            names.push(format!("{} more files", sources.len() - NAMED));
        }
        writeln!(
            out,
            "<footer><p>From <bdi>{}</bdi>. {} Made by samestory {} on {}; {}. This page loads nothing from anywhere.</p></footer>",
            names.join("</bdi>, <bdi>"),
            match self.summary.dead() {
                0 => String::new(),
                dead => format!("{} records could not be judged.", thousands(dead)),
            },
            env!("CARGO_PKG_VERSION"),
            escaped(&self.about.made_on, TextLimit::Title),
            escaped(&self.about.settings, TextLimit::Text),
        )
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digits = |group: &[u8]| {
            let bits =
                (0..3).fold(0, |bits, at| bits << 8 | usize::from(group.get(at).copied().unwrap_or(0)));
            let digit = |at: usize| char::from(DIGITS[bits >> (18 - 6 * at) & 63]);
            (0..4).map(move |at| if at <= group.len() { digit(at) } else { '=' }).collect::<String>()
        };
        bytes.chunks(3).map(digits).collect()
    }

    // A changed script that the policy does not know would leave the page empty.
    #[test]
    fn the_policy_knows_the_script_and_the_style_sheet() {
        let hash = |text: &str| base64(&Sha256::digest(text.as_bytes()));
        assert_eq!((hash(STYLE).as_str(), hash(SCRIPT).as_str()), (STYLE_HASH, SCRIPT_HASH));
    }
}
