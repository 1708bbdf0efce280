//! The data of the HTML page: groups, pairs and articles as `page.js` reads them. `page` puts the JSON into the page; which texts
//! are in it was decided before.

use std::collections::BTreeMap;

use serde::Serialize;

use samestory_engine::model::{ClusterId, EventTime, Fraction, Lang};

use super::page::HtmlPage;
use super::pair::compared;
use super::words::{kind_name, name, why};
use super::{PairKind, ReportGroup, ReportPair, Side};

/// The data that `page.js` reads.
#[derive(Serialize)]
struct PageData<'a> {
    groups: Vec<GroupData<'a>>,
    related: Vec<GroupData<'a>>,
    articles: Vec<ArticleData<'a>>,
    /// The names of languages and kinds.
    languages: BTreeMap<&'static str, &'static str>,
    kinds: BTreeMap<&'static str, &'static str>,
}

/// A group, or a pair of related articles, which the overview shows alike.
#[derive(Serialize)]
struct GroupData<'a> {
    id: String,
    order: u64,
    language: &'static str,
    title: &'a str,
    url: Option<&'a str>,
    size: u64,
    first: Option<String>,
    last: Option<String>,
    hosts: Vec<&'a str>,
    similarity: f64,
    confidence: f64,
    kinds: Vec<&'static str>,
    pairs: Vec<PairData<'a>>,
    members: Vec<MemberData<'a>>,
    /// The text that the search matches.
    search: String,
}

#[derive(Serialize)]
struct MemberData<'a> {
    id: &'a str,
    title: Option<&'a str>,
    host: Option<&'a str>,
    url: Option<&'a str>,
    time: Option<String>,
    match_type: Option<&'static str>,
}

#[derive(Serialize)]
struct PairData<'a> {
    kind: &'static str,
    similarity: f64,
    confidence: f64,
    why: String,
    /// The articles, by number; none if their texts are not on the page.
    old: Option<usize>,
    new: Option<usize>,
    old_id: &'a str,
    new_id: &'a str,
    /// The marked ranges are what differs, and not what both have.
    differences: bool,
    in_old: Vec<[usize; 2]>,
    in_new: Vec<[usize; 2]>,
}

#[derive(Serialize)]
struct ArticleData<'a> {
    id: &'a str,
    title: Option<&'a str>,
    host: Option<&'a str>,
    url: Option<&'a str>,
    time: Option<String>,
    text: Option<String>,
    /// Characters that are left out.
    more: usize,
}

/// The articles of the page, each once.
#[derive(Default)]
struct Articles<'a> {
    list: Vec<ArticleData<'a>>,
    numbers: BTreeMap<&'a Side, usize>,
}

impl HtmlPage<'_> {
    /// The articles, groups and pairs as JSON that may stand inside a script element.
    pub(super) fn data(&self) -> String {
        let mut articles = Articles::default();
        let mut groups: Vec<GroupData<'_>> = Vec::new();
        for (order, (id, group)) in self.groups.iter().enumerate() {
            groups.extend(self.group(id, group, order as u64, &mut articles));
        }
        let start = groups.len() as u64;
        let related: Vec<GroupData<'_>> = self
            .related
            .iter()
            .zip(start..)
            .map(|(pair, order)| self.related_pair(pair, order, &mut articles))
            .collect();
        let of_groups = self.groups.keys().map(|id| id.language);
        let languages = of_groups.chain(self.related.iter().map(|pair| pair.language));
        let languages = languages.map(|language: Lang| (language.code(), name(language)));
        let kinds = groups.iter().chain(&related).flat_map(|group| &group.kinds);
        let data = PageData {
            languages: languages.collect(),
            kinds: kinds.map(|kind| (*kind, kind_name(kind))).collect(),
            groups,
            related,
            articles: articles.list,
        };
        // `</script>` and `<!--` would end or change the element, whatever string they are in.
        serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c")
    }

    fn group<'a>(
        &'a self,
        id: &ClusterId,
        group: &'a ReportGroup,
        order: u64,
        articles: &mut Articles<'a>,
    ) -> Option<GroupData<'a>> {
        let cluster = group.cluster.as_ref()?;
        let canonical = cluster.members.iter().find(|member| member.id == cluster.canonical);
        let canonical = canonical.or(cluster.members.last())?;
        let titled = canonical.title.as_deref().filter(|title| !title.trim().is_empty());
        let any_title = || cluster.members.iter().find_map(|member| member.title.as_deref());
        let mut search = String::new();
        for member in &cluster.members {
            for part in [&member.title, &member.host].into_iter().flatten() {
                if !search.contains(part.as_str()) {
                    search.push_str(part);
                    search.push('\n');
                }
            }
        }
        // Files without event times have times of publication at best.
        let published = || cluster.members.iter().filter_map(|member| member.published_at);
        let known = |time: EventTime| Some(time).filter(|time| time.millis() > 0);
        let mut kinds: Vec<&'static str> = group.pairs.iter().map(|pair| pair.kind.class()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if group.pairs.iter().any(|pair| pair.review) {
            kinds.push("review");
        }
        Some(GroupData {
            id: id.to_string(),
            order,
            language: id.language.code(),
            title: titled.or_else(any_title).unwrap_or(canonical.id.as_str()),
            url: canonical.url.as_deref(),
            size: cluster.size,
            first: moment(known(cluster.first_seen).or(published().min())),
            last: moment(known(cluster.last_seen).or(published().max())),
            hosts: cluster.hosts.iter().map(String::as_str).collect(),
            similarity: group.least.unwrap_or(Fraction::new(1.0)).get(),
            confidence: group.confidence().get(),
            kinds,
            pairs: group.pairs.iter().map(|pair| self.pair(pair, articles)).collect(),
            members: cluster
                .members
                .iter()
                .rev()
                .map(|member| MemberData {
                    id: member.id.as_str(),
                    title: member.title.as_deref().filter(|title| !title.trim().is_empty()),
                    host: member.host.as_deref(),
                    url: member.url.as_deref(),
                    time: moment(member.published_at),
                    match_type: member.match_type.map(|kind| kind.as_str()),
                })
                .collect(),
            search,
        })
    }

    fn related_pair<'a>(
        &'a self,
        pair: &'a ReportPair,
        order: u64,
        articles: &mut Articles<'a>,
    ) -> GroupData<'a> {
        let shown = [&pair.old, &pair.new].map(|side| self.texts.get(side));
        let present = || shown.into_iter().flatten();
        let mut hosts: Vec<&str> = present().filter_map(|article| article.host.as_deref()).collect();
        hosts.dedup();
        let title = shown[1].and_then(|article| article.title.as_deref()).unwrap_or(pair.new.id.as_str());
        let mut times: Vec<EventTime> = present().filter_map(|article| article.published_at).collect();
        times.sort();
        let parts = present().flat_map(|article| [article.title.as_deref(), article.host.as_deref()]);
        GroupData {
            id: format!("related-{order}"),
            order,
            language: pair.language.code(),
            title,
            url: shown[1].and_then(|article| article.url.as_deref()),
            size: 2,
            first: moment(times.first().copied()),
            last: moment(times.last().copied()),
            hosts,
            similarity: pair.similarity.get(),
            confidence: pair.confidence.get(),
            kinds: vec![pair.kind.class()],
            pairs: vec![self.pair(pair, articles)],
            members: Vec::new(),
            search: parts.flatten().collect::<Vec<_>>().join("\n"),
        }
    }

    fn pair<'a>(&'a self, pair: &'a ReportPair, articles: &mut Articles<'a>) -> PairData<'a> {
        let is_shown = self.shown.contains(&pair.order);
        let mut data = PairData {
            kind: pair.kind.class(),
            similarity: pair.similarity.get(),
            confidence: pair.confidence.get(),
            why: why(pair),
            old: None,
            new: None,
            old_id: pair.old.id.as_str(),
            new_id: pair.new.id.as_str(),
            differences: false,
            in_old: Vec::new(),
            in_new: Vec::new(),
        };
        if !is_shown {
            return data;
        }
        let texts = [&pair.old, &pair.new].map(|side| self.texts.get(side).map(|shown| shown.text.as_str()));
        if let ([Some(old), Some(new)], false) = (texts, pair.kind == PairKind::Exact) {
            let compared = compared(old, new, pair.language);
            data.differences = compared.differences;
            [data.in_old, data.in_new] = compared.marked;
        }
        data.old = Some(self.article(&pair.old, articles));
        data.new = (pair.kind != PairKind::Exact).then(|| self.article(&pair.new, articles));
        data
    }

    /// The number of an article in the data.
    fn article<'a>(&'a self, side: &'a Side, articles: &mut Articles<'a>) -> usize {
        if let Some(&number) = articles.numbers.get(side) {
            return number;
        }
        let shown = self.texts.get(side);
        let text = shown.map(|shown| super::pair::shown_text(&shown.text));
        let (text, more) = text.map_or((None, 0), |(text, more)| (Some(text), more));
        let present = |value: &'a Option<String>| value.as_deref().filter(|text| !text.trim().is_empty());
        articles.list.push(ArticleData {
            id: side.id.as_str(),
            title: shown.and_then(|shown| present(&shown.title)),
            host: shown.and_then(|shown| present(&shown.host)),
            url: shown.and_then(|shown| present(&shown.url)),
            time: moment(shown.and_then(|shown| shown.published_at)),
            text,
            more,
        });
        let number = articles.list.len() - 1;
        articles.numbers.insert(side, number);
        number
    }
}

fn moment(time: Option<EventTime>) -> Option<String> {
    time.map(|time| time.to_string())
}
