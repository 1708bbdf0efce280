//! The page itself: one file, no network, no script. Everything that came from outside is [`escaped`].

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::files::Summary;
use samestory_engine::model::Lang;
use samestory_engine::text::language;

use super::pair::{Cut, side_by_side};
use super::texts::Shown;
use super::words::{escaped, headline, label, name, percent, sure};
use super::{COPIES_IN_CLUSTER, Card, Kind, PAIRS_IN_CLUSTER, Pair, Side};
use crate::files::thousands;

const STYLE: &str = include_str!("style.css");
/// No script, no picture, no font, no frame, nothing from anywhere: only the style that stands here.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const LEDE: &str = "What two texts have in common is marked. The most doubtful decisions come first: they are \
    the ones worth a look.";

pub(super) struct Page<'a> {
    pub(super) summary: &'a Summary,
    pub(super) cards: &'a [Card<'a>],
    pub(super) related: &'a [Pair],
    pub(super) related_seen: u64,
    /// Near-duplicates that are not on the page.
    pub(super) hidden_pairs: u64,
    pub(super) texts: &'a BTreeMap<Side, Shown>,
}

impl Page<'_> {
    pub(super) fn render(&self) -> String {
        let mut html = String::new();
        // Writing to a string cannot fail.
        let _written = self.write(&mut html);
        html
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let total = self.summary.total();
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>samestory: {} articles, {} told before</title>\n<style>\n{STYLE}{}</style>\n</head>\n\
             <body>\n<div class=\"wrap\">\n<header>\n<h1>{}</h1>\n\
             <p class=\"lede\">{LEDE}</p>\n</header>\n",
            total.articles(),
            total.near + total.exact,
            self.filter_rules(),
            headline(total.articles(), total.near + total.exact),
        )?;
        self.tiles(out)?;
        self.filters(out)?;
        out.push_str("<main>\n");
        for card in self.cards {
            self.card(out, card)?;
        }
        if self.cards.is_empty() {
            out.push_str("<p class=\"note\">No article repeats another: every text is new.</p>\n");
        }
        if self.hidden_pairs > 0 {
            let (hidden, cards) = (thousands(self.hidden_pairs), self.cards.len());
            writeln!(
                out,
                "<p class=\"note\">This page shows the {cards} most doubtful groups; {hidden} further near-duplicates \
                 are left out. All verdicts are in the output.</p>"
            )?;
        }
        if !self.related.is_empty() {
            out.push_str("<h2>Alike, but not the same story</h2>\n<p class=\"lede\">Kept as unique: the same form around other facts, or a longer text that has an earlier one inside.</p>\n");
            for pair in self.related {
                self.related_card(out, pair)?;
            }
            let hidden = self.related_seen - self.related.len() as u64;
            if hidden > 0 {
                writeln!(out, "<p class=\"note\">{} more like these are left out.</p>", thousands(hidden))?;
            }
        }
        write!(
            out,
            "</main>\n<footer>Made by samestory {}. This page loads nothing from anywhere.</footer>\n</div>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION")
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
            ("", dead, "could not be read"),
        ];
        for (class, count, label) in tiles {
            if count > 0 || label != "could not be read" {
                writeln!(out, "<li class=\"{class}\"><b>{}</b><span>{label}</span></li>", thousands(count))?;
            }
        }
        out.push_str("</ul>\n");
        if self.summary.judged_before > 0 {
            writeln!(
                out,
                "<p class=\"note\">The run was continued: {} records were judged before and are not counted here.</p>",
                thousands(self.summary.judged_before)
            )?;
        }
        out.push_str("<details class=\"languages\"><summary>By language</summary>\n<table><tr><th>language</th><th>articles</th><th>unique</th><th>near</th><th>exact</th></tr>\n");
        let mut languages: Vec<_> = self.summary.languages.iter().collect();
        languages.sort_by_key(|(language, counts)| (std::cmp::Reverse(counts.articles()), **language));
        for &(&language, counts) in &languages {
            let cells = [counts.articles(), counts.unique, counts.near, counts.exact].map(thousands);
            writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", name(language), cells.join("</td><td>"))?;
        }
        out.push_str("</table></details>\n");
        Ok(())
    }

    /// The languages on the page, in order of their names.
    fn languages(&self) -> Vec<Lang> {
        let cards = self.cards.iter().map(|card| card.id.language);
        let mut languages: Vec<Lang> = cards.chain(self.related.iter().map(|pair| pair.language)).collect();
        languages.sort_by_key(|&language| (name(language), language));
        languages.dedup();
        languages
    }

    fn filters(&self, out: &mut String) -> fmt::Result {
        let languages = self.languages();
        out.push_str("<div class=\"filters\">\n");
        let mut group = |legend: &str, key: &str, choices: &[(String, String)]| -> fmt::Result {
            write!(out, "<fieldset><legend>{legend}</legend>")?;
            for (at, (value, label)) in choices.iter().enumerate() {
                let checked = if at == 0 { " checked" } else { "" };
                write!(
                    out,
                    "<input type=\"radio\" name=\"{key}\" id=\"{key}-{value}\"{checked}><label for=\"{key}-{value}\">{label}</label>"
                )?;
            }
            writeln!(out, "</fieldset>")
        };
        if languages.len() > 1 {
            let all = std::iter::once(("all".to_owned(), "all".to_owned()));
            let each =
                languages.iter().map(|&language| (language.code().to_owned(), name(language).to_owned()));
            group("Language", "l", &all.chain(each).collect::<Vec<_>>())?;
        }
        let kinds = [
            ("all", "everything"),
            ("near", "near"),
            ("exact", "word for word"),
            ("related", "not the same"),
        ];
        group("Show", "k", &kinds.map(|(value, label)| (value.to_owned(), label.to_owned())))?;
        out.push_str("</div>\n");
        Ok(())
    }

    /// What the filters do, for the languages that are there. Codes come from our own table.
    fn filter_rules(&self) -> String {
        let mut rules = String::new();
        let codes = self.languages();
        for (key, value) in codes
            .iter()
            .map(|language| ("l", language.code()))
            .chain(["near", "exact", "related"].map(|kind| ("k", kind)))
        {
            let _written = writeln!(
                rules,
                "body:has(#{key}-{value}:checked) article:not(.{key}-{value}) {{ display: none; }}"
            );
        }
        rules.push_str("body:has(#k-near:checked) h2, body:has(#k-exact:checked) h2, body:has(#k-near:checked) h2 + .lede, body:has(#k-exact:checked) h2 + .lede { display: none; }\n");
        rules
    }

    fn card(&self, out: &mut String, card: &Card<'_>) -> fmt::Result {
        let language = card.id.language;
        let kind = if card.pairs.is_empty() { "exact" } else { "near" };
        let first = card.pairs.first().or(card.copies.first());
        let Some(first) = first else { return Ok(()) };
        writeln!(out, "<article class=\"l-{} k-{kind}\">", language.code())?;
        let others = card.pairs.len() + card.copies.len();
        let count = if others == 1 { "told twice".to_owned() } else { format!("told {} times", others + 1) };
        writeln!(
            out,
            "<header><h3 dir=\"auto\" lang=\"{}\">{}</h3><span class=\"sure\">{count} · {}</span></header>",
            language.code(),
            escaped(&self.title(&first.old), Cut::Title),
            name(language),
        )?;
        let mut pairs = card.pairs.iter();
        if let Some(pair) = pairs.next() {
            self.pair(out, pair)?;
        }
        for pair in pairs.by_ref().take(PAIRS_IN_CLUSTER - 1) {
            writeln!(
                out,
                "<details class=\"further\"><summary>{}, {}: <bdi>{}</bdi></summary>",
                label(pair.kind).1,
                sure(pair.confidence),
                escaped(&self.title(&pair.new), Cut::Title)
            )?;
            self.pair(out, pair)?;
            out.push_str("</details>\n");
        }
        let unseen = pairs.count();
        if unseen > 0 {
            writeln!(out, "<p class=\"facts\">… and {unseen} more near-duplicates in this group</p>")?;
        }
        if !card.copies.is_empty() {
            self.copies(out, card)?;
        }
        out.push_str("</article>\n");
        Ok(())
    }

    fn copies(&self, out: &mut String, card: &Card<'_>) -> fmt::Result {
        let count = card.copies.len();
        let what = if count == 1 {
            "The same, word for word:".to_owned()
        } else {
            format!("{count} times the same, word for word:")
        };
        writeln!(
            out,
            "<p class=\"facts\"><span class=\"badge exact\">exact</span> {what}</p><ul class=\"copies\">"
        )?;
        for pair in card.copies.iter().take(COPIES_IN_CLUSTER) {
            write!(out, "<li>{}", self.line(&pair.new))?;
            if card.pairs.is_empty() || card.pairs[0].old.id != pair.old.id {
                write!(out, " <span class=\"more\">copies</span> {}", self.line(&pair.old))?;
            }
            out.push_str("</li>\n");
        }
        if count > COPIES_IN_CLUSTER {
            writeln!(out, "<li>… and {} more</li>", count - COPIES_IN_CLUSTER)?;
        }
        out.push_str("</ul>\n");
        Ok(())
    }

    fn related_card(&self, out: &mut String, pair: &Pair) -> fmt::Result {
        let language = pair.language;
        writeln!(
            out,
            "<article class=\"l-{0} k-related\">\n<header><h3 dir=\"auto\" lang=\"{0}\">{1}</h3><span class=\"sure\">{2}</span></header>",
            language.code(),
            escaped(&self.title(&pair.new), Cut::Title),
            name(language),
        )?;
        self.pair(out, pair)?;
        out.push_str("</article>\n");
        Ok(())
    }

    fn pair(&self, out: &mut String, pair: &Pair) -> fmt::Result {
        let (class, label) = label(pair.kind);
        writeln!(
            out,
            "<p class=\"facts\"><span class=\"badge {class}\">{label}</span><span>{}</span><span>similarity {}</span>{}</p>",
            sure(pair.confidence),
            percent(pair.similarity),
            match pair.kind {
                Kind::Near | Kind::Rewritten | Kind::Partial => format!(
                    "<span>{} of the later text stands in the earlier one</span>",
                    percent(pair.containment)
                ),
                _ => String::new(),
            },
        )?;
        let (old, new) = (self.texts.get(&pair.old), self.texts.get(&pair.new));
        let texts = match (old, new) {
            (Some(old), Some(new)) => side_by_side(&old.text, &new.text, language::row(pair.language)),
            (old, new) => {
                [old, new].map(|shown| shown.map_or(GONE.to_owned(), |shown| escaped(&shown.text, Cut::Text)))
            }
        };
        out.push_str("<div class=\"pair\">\n");
        for ((side, text), when) in [&pair.old, &pair.new].into_iter().zip(texts).zip(["earlier", "later"]) {
            writeln!(
                out,
                "<section class=\"side\"><div>{}</div><div class=\"text\" dir=\"auto\" lang=\"{}\">{text}</div></section>",
                self.heading(side, when),
                pair.language.code(),
            )?;
        }
        out.push_str("</div>\n");
        Ok(())
    }

    /// The headline, or the id where there is none.
    fn title(&self, side: &Side) -> String {
        let shown = self.texts.get(side).and_then(|shown| shown.title.clone());
        shown.filter(|title| !title.trim().is_empty()).unwrap_or_else(|| side.id.to_string())
    }

    fn heading(&self, side: &Side, when: &str) -> String {
        let shown = self.texts.get(side);
        let mut parts =
            vec![when.to_owned(), format!("<bdi>{}</bdi>", escaped(side.id.as_str(), Cut::Title))];
        if let Some(host) = shown.and_then(|shown| shown.host.as_deref()) {
            parts.push(format!("<bdi>{}</bdi>", escaped(host, Cut::Title)));
        }
        if let Some(published) = shown.and_then(|shown| shown.published_at) {
            parts.push(published.to_string().replace('T', " ").replace(":00Z", "").replace('Z', ""));
        }
        format!("<b dir=\"auto\">{}</b>{}", self.linked(side), parts.join(" · "))
    }

    fn line(&self, side: &Side) -> String {
        let host = self.texts.get(side).and_then(|shown| shown.host.as_deref()).unwrap_or(side.id.as_str());
        format!(
            "<bdi>{}</bdi> <span class=\"more\"><bdi>{}</bdi></span>",
            self.linked(side),
            escaped(host, Cut::Title)
        )
    }

    /// The headline, as a link where the address is one that a browser may be sent to.
    fn linked(&self, side: &Side) -> String {
        let title = escaped(&self.title(side), Cut::Title);
        let url = self.texts.get(side).and_then(|shown| shown.url.as_deref());
        match url
            .filter(|url| url.len() < 2048 && (url.starts_with("https://") || url.starts_with("http://")))
        {
            Some(url) => format!(
                "<a rel=\"noopener noreferrer nofollow\" href=\"{}\">{title}</a>",
                escaped(url, Cut::Text)
            ),
            None => title,
        }
    }
}

const GONE: &str = "<span class=\"more\">The text could not be read again.</span>";
