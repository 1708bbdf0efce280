//! The evidence model: its table, its laws, and the promised outcomes for page furniture and odd input.

use proptest::prelude::*;
use samestory_engine::engine::compare::evidence::{Evidence, Measure, Weights};
use samestory_engine::engine::compare::{Relation, Rules, measure};
use samestory_engine::engine::{Algorithm, LanguageSettings, Preparer, Settings};
use samestory_engine::fingerprint::Fingerprint;
use samestory_engine::model::VerdictKind;
use samestory_engine::model::{Flag, RawArticle, RelationKind, Verdict};
use samestory_engine::text::Options;

use super::engine_fixture::{
    EngineFixture, article, edited_news, headline, id, line, news, rewrite, window, word,
};

fn titled(name: &str, title: &str, body: &str) -> RawArticle {
    RawArticle { title: Some(title.to_owned()), ..article(name, body) }
}

fn untitled(name: &str, body: &str) -> RawArticle {
    RawArticle { title: None, ..article(name, body) }
}

fn fixture() -> EngineFixture {
    EngineFixture::new(Settings::default())
}

fn print(article: &RawArticle) -> Fingerprint {
    Preparer::new(Options::default()).prepare(article, &line(1)).unwrap().fingerprint
}

fn is_duplicate(tagged: &Verdict) -> bool {
    tagged.kind != VerdictKind::Unique
}

#[test]
fn no_weight_is_negative_and_every_curve_is_monotone() {
    let weights = Weights::FITTED;
    for measure in Measure::ALL {
        let at = measure as usize;
        let name = measure.as_str();
        assert!(weights.steps[at].iter().all(|&step| step >= 0.0), "{name}: {:?}", weights.steps[at]);
        assert!((0.0..=1.0).contains(&weights.neutral[at]), "{name}");
        assert_eq!(weights.contribution(measure, &Evidence::default()), 0.0, "{name}: unknown says nothing");
        let curve: Vec<f64> = (0..=200)
            .map(|step| {
                let mut evidence = Evidence::default();
                evidence.set(measure, Some(f64::from(step) / 200.0));
                weights.contribution(measure, &evidence)
            })
            .collect();
        let monotone = curve.windows(2).all(|pair| match measure.speaks_for() {
            true => pair[0] <= pair[1],
            false => pair[0] >= pair[1],
        });
        assert!(monotone, "{name}: {curve:?}");
    }
}

/// The measures for which a higher value is evidence for a copy.
fn overlaps() -> Vec<Measure> {
    Measure::ALL.into_iter().filter(|measure| measure.speaks_for()).collect()
}

/// Any possible measurements.
fn any_evidence() -> impl Strategy<Value = Evidence> {
    let share = prop::option::weighted(0.8, 0.0..=1.0);
    prop::collection::vec(share, Measure::ALL.len()).prop_map(|shares| {
        let mut evidence = Evidence::default();
        for (measure, share) in Measure::ALL.into_iter().zip(shares) {
            evidence.set(measure, share);
        }
        evidence
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_overlap_never_turns_a_copy_into_a_unique_article(
        evidence in any_evidence(), raised in prop::sample::select(overlaps()), by in 0.0..=1.0, line in 0.05..0.95,
    ) {
        let Some(share) = evidence.get(raised) else { return Ok(()) };
        let rules = Rules { min_confidence: line, ..Rules::default() };
        let settings = LanguageSettings { rules, ..LanguageSettings::default() };
        let (old, new) = (print(&article("a", &news(1, 140))), print(&article("b", &edited_news(1, 140, 1, 5))));
        let mut before = measure(&old, &new);
        before.evidence = evidence;
        let mut after = before;
        after.evidence.set(raised, Some(share + (1.0 - share) * by));
        settings.decide(&old, &new, &mut before);
        settings.decide(&old, &new, &mut after);
        prop_assert!(after.log_odds >= before.log_odds && after.confidence >= before.confidence);
        prop_assert!(after.relation.is_duplicate() || !before.relation.is_duplicate(), "{:?}", raised);
    }
}

/// A history with every kind of borderline case: copies, edits, rewrites, parts, wholes, forms, stubs.
fn everything() -> Vec<RawArticle> {
    let mut articles = Vec::new();
    for story in 1..8u64 {
        let body = news(story, 200);
        let title = headline(story);
        let mut add = |kind: &str, title: &str, body: &str| {
            articles.push(titled(&format!("{kind}-{story}"), title, body));
        };
        add("first", &title, &body);
        add("copy", &headline(100 + story), &body);
        for edits in [4, 12, 24, 40] {
            let other = format!("{} {}", headline(200 + story), &title[..title.len() / 2]);
            add(&format!("edited-{edits}"), &other, &edited_news(story, 200, edits, edits));
        }
        add("rewritten", &headline(300 + story), &rewrite(&body, story));
        add("part", &headline(400 + story), &news(story, 60));
        add("page", &title, &format!("{} {body}", news(1_000 + story, 40 * story)));
        add("form", &headline(500 + story), &window(1, 100, 150, story, 0));
        add("stub", &headline(600 + story), &news(999, 42));
        add("flash", &headline(700 + story), &edited_news(story, 28, story, 1));
    }
    articles
}

#[test]
fn no_verdict_contradicts_its_confidence() {
    for min_confidence in [0.2, 0.5, 0.65, 0.8, 0.95] {
        let rules = Rules { min_confidence, ..Rules::default() };
        let default = LanguageSettings { rules, ..LanguageSettings::default() };
        let mut fixture = EngineFixture::new(Settings { default, ..Settings::default() });
        let (mut duplicates, mut uniques) = (0, 0);
        for article in everything() {
            let tagged = fixture.tag(&article);
            let sure = tagged.confidence.get();
            if is_duplicate(&tagged) {
                duplicates += 1;
                assert!(sure >= min_confidence, "at {min_confidence}: {tagged:?}");
            } else {
                uniques += 1;
                // A unique verdict is as confident as its closest candidate is not a copy.
                assert!(sure >= 1.0 - min_confidence, "at {min_confidence}: {tagged:?}");
            }
        }
        // Seven stories, each with a word-for-word copy.
        assert!(duplicates >= 7 && uniques >= 14, "at {min_confidence}: {duplicates} and {uniques}");
    }
}

#[test]
fn a_higher_threshold_finds_fewer_copies() {
    let (old, new) = (print(&article("a", &news(1, 200))), print(&article("b", &edited_news(1, 200, 1, 40))));
    let at = |min_confidence: f64| {
        let rules = Rules { min_confidence, ..Rules::default() };
        LanguageSettings { rules, ..LanguageSettings::default() }.compare(&old, &new)
    };
    let sure = at(0.5).confidence.get();
    assert!(at(sure - 0.01).relation.is_duplicate(), "{:?}", at(sure));
    assert!(!at(sure + 0.01).relation.is_duplicate());
    assert_eq!(at(sure + 0.01).confidence, at(0.5).confidence, "the threshold does not change the evidence");
}

// The frequency of a phrase counts other clusters. When it counted documents, the phrases of a story with
// many copies became common, and its later copies were unique.
#[test]
fn the_two_hundredth_lightly_edited_copy_is_found_like_the_second() {
    let mut fixture = fixture();
    let mut sure = Vec::new();
    for copy in 0..200u64 {
        let body = edited_news(1, 280, copy, if copy == 0 { 0 } else { 4 });
        let tagged = fixture.tag(&titled(&format!("copy-{copy}"), "Council votes for a new bridge", &body));
        assert_eq!(tagged.cluster.to_string(), "en:0:0", "copy {copy}: {tagged:?}");
        if copy > 0 {
            assert!(is_duplicate(&tagged), "copy {copy}: {tagged:?}");
            sure.push(tagged.confidence.get());
        }
    }
    let (second, least) = (sure[0], sure.iter().copied().fold(1.0, f64::min));
    assert!(least > second - 0.05, "{second} for the second, {least} at worst");
}

/// A notice that a site shows instead of an article.
const STUB: &str = "To continue reading this article please log in or subscribe. Subscribers have unlimited access \
    to all articles on every device. You can cancel your subscription at any time. Already a subscriber? Log in here \
    with your email address and password.";
/// The rest of a longer one.
const CONSENT: &str = "We and our partners store and access information on your device, such as unique identifiers in \
    cookies, to process personal data. You may accept or manage your choices, including your right to object where \
    legitimate interest is used, on the privacy policy page at any time.";

fn tokens(body: &str) -> u32 {
    print(&article("a", body)).tokens
}

#[test]
fn a_stub_under_many_headlines_is_furniture_and_wire_copy_is_not() {
    let long = format!("{STUB} {CONSENT}");
    assert!((38..50).contains(&tokens(STUB)) && (80..110).contains(&tokens(&long)), "{}", tokens(&long));
    let verdicts = |body: &str| -> Vec<Verdict> {
        let mut fixture = fixture();
        (0..200).map(|n| fixture.tag(&titled(&format!("page-{n}"), &headline(n), body))).collect()
    };
    let short = verdicts(STUB);
    assert!(short.iter().all(|tagged| !is_duplicate(tagged)), "{short:?}");
    assert!(short[1..].iter().all(|tagged| tagged.related[0].relation == RelationKind::SameFurniture));
    // No word of the headlines is in the text, so the second page tells.
    let long = verdicts(&long);
    assert!(long.iter().all(|tagged| !is_duplicate(tagged)), "{long:?}");
    let wire = verdicts(&news(1, 300));
    assert!(wire[1..].iter().all(|tagged| tagged.kind == VerdictKind::ExactDuplicate));
    assert!(wire[1..].iter().all(|tagged| tagged.cluster == wire[0].cluster));
}

/// The end of every page of a site. No word list knows it.
const COLOPHON: &str = "The Harbour Ledger has reported from this region since 1889. If you have a tip, call our news desk on \
    555 0147 or come to the office at the old customs house. Correspondents in Geneva, Nairobi, Singapore and Bogota contributed \
    to our coverage this week. Editing by Martha Quill and Owen Pratt. Opinions expressed by columnists are their own and do not \
    reflect those of the company, its shareholders or its affiliates. Prices are delayed by fifteen minutes. Read next: five \
    things to know before the markets open, why house prices keep rising, the best places to eat by the river this weekend.";

// Of 123 real articles of 90 words above one footer, 110 became copies of that footer once it had been sent as an article: all of
// it is in each of them, and as its cluster grew with each of them, its phrases never became common.
#[test]
fn a_footer_sent_as_an_article_changes_no_article_above_it() {
    for footer_at in [0, 1, 20] {
        for title in [Some("The Harbour Ledger"), None] {
            let mut fixture = fixture();
            let mut copies = Vec::new();
            for n in 0..40 {
                if n == footer_at {
                    fixture
                        .tag(&RawArticle { title: title.map(str::to_owned), ..untitled("footer", COLOPHON) });
                }
                let body = format!("{}\n\n{COLOPHON}", news(n, 90));
                let tagged = fixture.tag(&titled(&format!("story-{n}"), &headline(n), &body));
                if is_duplicate(&tagged) {
                    copies.push(tagged);
                }
            }
            assert!(copies.is_empty(), "footer at {footer_at}: {copies:?}");
        }
    }
}

// Of those 200 pages, 24 were still exact duplicates: their headlines follow one form. With 100 words it was 48, because a headline
// and the stub may have a word in common by chance.
#[test]
fn a_stub_is_furniture_under_headlines_of_one_form_too() {
    let short = "The page that you are trying to reach is not here at this moment. Please come back later or return to the \
        front of the site, where the news of the day is waiting.";
    let long = format!(
        "{short} The information in this publication is supplied as is, without any express or implied warranty. We accept \
         no responsibility or liability for the accuracy, content, images, videos, licences, completeness, legality, or \
         reliability of what it contains. The terms of use may change at any time and without notice to anybody."
    );
    for body in [short, &long] {
        let mut fixture = fixture();
        for n in 0..6 {
            fixture.tag(&titled(&format!("page-{n}"), &headline(n), body));
        }
        for (n, company) in ["Halverson", "Pembroke", "Liability"].into_iter().enumerate() {
            let title = format!("{company} Industries second quarter results, analysts comment");
            let tagged = fixture.tag(&titled(&format!("form-{n}"), &title, body));
            assert_eq!(tagged.kind, VerdictKind::Unique, "{company}: {tagged:?}");
        }
    }
}

// An item that was sent again in another layout was missed: half of the lines are new, and amounts in other units are other numbers.
#[test]
fn two_layouts_of_one_table_are_one_item_and_the_next_companys_is_not() {
    let table = |figures: [&str; 8]| {
        let [a, b, c, d, e, f, g, h] = figures;
        format!(
            "Shr profit one ct vs loss four cts\nNet profit {a} vs loss {b}\nRevs {c} vs {d}\nSix mths\nShr profit three cts vs \
             loss eight cts\nNet profit {e} vs loss {f}\nRevs {g} vs {h}"
        )
    };
    let first =
        table(["53,040", "255,568", "2,252,246", "755,605", "217,884", "517,538", "4,895,720", "1,569,662"]);
    let other =
        table(["61,310", "187,220", "3,118,402", "913,577", "318,551", "402,917", "5,411,038", "2,204,116"]);
    let again = "Net profit 53,040 vs loss 255,568\nShr profit one ct vs loss four cts\nRev 2,252,246 vs 755,605\nSix months\nNet \
        profit 217,884 vs loss 517,538\nShr profit three cts vs loss eight cts\nRev 4.9 mln vs 1.6 mln\nNOTE: Company's full name \
        is Alder Mills Inc. Periods ended February 28.";
    let mut fixture = fixture();
    fixture.tag(&titled("first", "ALDER MILLS INC <ALDR> 2ND QTR NET", &first));
    let next = fixture.tag(&titled("next", "BIRCH MILLS INC <BRCH> 2ND QTR NET", &other));
    assert_eq!(next.kind, VerdictKind::Unique, "{next:?}");
    let tagged = fixture.tag(&titled("again", "ALDER MILLS <ALDR> 2ND QTR FEB 28 NET", again));
    assert_eq!(tagged.duplicate_of, Some(id("first")), "{tagged:?}");
}

// The disclaimer below every article of an aggregator was fetched instead of two articles. It has 58 words, so nothing but five
// headlines told that it was none.
#[test]
fn a_short_text_under_two_headlines_is_an_article_only_if_it_fits_them() {
    let under = |titles: [&str; 2], body: &str| {
        assert!((50..120).contains(&tokens(body)), "{}", tokens(body));
        let mut fixture = fixture();
        fixture.tag(&titled("a", titles[0], body));
        fixture.tag(&titled("b", titles[1], body))
    };
    let disclaimer = "The information in this publication is supplied as is, without any express or implied warranty. We accept \
        no responsibility or liability for the accuracy, content, images, videos, licences, completeness, legality, or \
        reliability of what it contains. Please direct any complaints or copyright issues to the provider above. \
        The terms of use may change at any time and without notice to anybody.";
    let refused =
        under(["Bridegroom from Irbid sends message", "Mosques in Gaza closed for weeks"], disclaimer);
    assert_eq!(refused.kind, VerdictKind::Unique, "{refused:?}");
    assert_eq!(refused.related[0].relation, RelationKind::SameFurniture);
    let item = "A night train from Vienna was stopped at the border on Friday after a fire broke out in the dining car. Nobody was \
        hurt. The 212 passengers spent four hours in a school gymnasium before buses took them on to Venice, the railway said. \
        Police suspect a faulty coffee machine. The line was open again by noon, in time for the holiday traffic.";
    let copy = under(
        [
            "Passengers stranded after night train catches fire",
            "Vienna to Venice by buses: coffee machine blamed",
        ],
        item,
    );
    assert_eq!(copy.kind, VerdictKind::ExactDuplicate, "{copy:?}");
}

// A report with other numbers and names was a copy of the first quarter of an earlier one, because that quarter had neither.
#[test]
fn a_report_that_differs_from_the_whole_is_no_copy_of_its_part() {
    let plain = |words: std::ops::Range<u64>| words.map(word).collect::<Vec<_>>().join(" ");
    let opening = plain(0..70);
    // One name and one number among eight words, others in every edition.
    let facts = |edition: u64| {
        let fact = |at: u64| {
            let name = word(edition << 30 | at);
            let (initial, rest) = name.split_at(1);
            let number = 1_000 + 7 * at + 331 * edition;
            format!("{} {}{rest} {number}", plain(100 + 8 * at..108 + 8 * at), initial.to_uppercase())
        };
        (0..16).map(fact).collect::<Vec<_>>().join(" ")
    };
    let (first, other) = (format!("{opening} {}", facts(1)), format!("{opening} {}", facts(2)));
    let mut fixture = fixture();
    fixture.tag(&untitled("whole", &first));
    assert_eq!(fixture.tag(&untitled("part", &opening)).duplicate_of, Some(id("whole")));
    let tagged = fixture.tag(&untitled("other", &other));
    assert_eq!(tagged.kind, VerdictKind::Unique, "{tagged:?}");
    assert!(tagged.confidence.get() >= 0.5);
    // A copy of the whole is still one, whatever else the cluster holds.
    assert_eq!(fixture.tag(&untitled("again", &first)).kind, VerdictKind::ExactDuplicate);
}

#[test]
fn the_simhash_algorithms_decide_by_distance_alone() {
    let (old, part) = (print(&article("a", &news(1, 200))), print(&article("b", &news(1, 100))));
    let edited = print(&article("c", &edited_news(1, 200, 1, 10)));
    for algorithm in [Algorithm::Simhash128, Algorithm::Simhash64] {
        for new in [&part, &edited] {
            let with = |hamming| {
                LanguageSettings { algorithm, hamming, ..LanguageSettings::default() }.compare(&old, new)
            };
            let pair = with(0);
            let distance = if algorithm == Algorithm::Simhash128 { pair.distance } else { pair.distance64 };
            assert!(distance > 0, "{pair:?}");
            for hamming in 0..64 {
                let expected = if distance <= hamming { Relation::Near } else { Relation::Different };
                assert_eq!(with(hamming).relation, expected, "{distance} bits, {hamming} allowed");
            }
        }
        assert_eq!(
            LanguageSettings { algorithm, hamming: 0, ..LanguageSettings::default() }
                .compare(&old, &old)
                .relation,
            Relation::Exact
        );
    }
}

#[test]
fn an_article_of_a_title_alone_is_never_matched() {
    let mut fixture = fixture();
    for name in ["a", "b", "c"] {
        let tagged = fixture.tag(&titled(name, "Council votes for a new bridge", ""));
        assert_eq!((tagged.kind, &tagged.flags[..]), (VerdictKind::Unique, &[Flag::NoText][..]));
        assert_eq!(tagged.related, []);
    }
}

#[test]
fn a_body_that_is_its_title_is_matched_word_for_word() {
    let mut fixture = fixture();
    let headline = "Council votes for a new bridge";
    fixture.tag(&titled("a", headline, headline));
    let copy = fixture.tag(&titled("b", headline, headline));
    assert_eq!((copy.kind, copy.duplicate_of), (VerdictKind::ExactDuplicate, Some(id("a"))));
    let other = "Council votes against a new bridge";
    assert_eq!(fixture.tag(&titled("c", other, other)).kind, VerdictKind::Unique, "too few words to compare");
}

#[test]
fn a_thousand_copies_of_a_stub_cost_no_more_than_the_hundredth() {
    let mut fixture = fixture();
    let mut most = 0;
    for n in 0..1_000u64 {
        let prepared = Preparer::new(Options::default())
            .prepare(&titled(&format!("page-{n}"), &headline(n), STUB), &line(n))
            .unwrap();
        let item = fixture.item(None, samestory_engine::engine::Incoming::Article(Box::new(prepared)));
        let plan = fixture.run(vec![item]);
        most = most.max(plan.stats.candidates);
        let tagged = super::engine_fixture::tagged(&plan.decided[0].outputs).unwrap();
        assert_eq!(tagged.kind, VerdictKind::Unique, "page {n}: {tagged:?}");
    }
    let cap = Settings::default().max_bucket as u64;
    assert!(most <= 4 * cap + 1, "{most} texts were looked at for one article");
}

#[test]
fn a_text_of_one_repeated_word_is_a_copy_of_itself_and_of_no_news() {
    let repeated = |word: &str, times: usize| vec![word; times].join(" ");
    let mut fixture = fixture();
    fixture.tag(&untitled("news", &news(1, 200)));
    assert_eq!(fixture.tag(&untitled("a", &repeated("bridge", 300))).kind, VerdictKind::Unique);
    assert_eq!(fixture.tag(&untitled("b", &repeated("bridge", 300))).kind, VerdictKind::ExactDuplicate);
    assert_eq!(fixture.tag(&untitled("c", &repeated("tunnel", 300))).kind, VerdictKind::Unique);
    // One phrase is little evidence either way; the only promise is that it is not the same text.
    assert_ne!(fixture.tag(&untitled("d", &repeated("bridge", 200))).kind, VerdictKind::ExactDuplicate);
}

#[test]
fn without_titles_copies_are_found_and_stubs_are_told_by_their_words() {
    let mut fixture = fixture();
    for story in 0..20u64 {
        let first = fixture.tag(&untitled(&format!("a{story}"), &news(story, 200)));
        assert_eq!(first.kind, VerdictKind::Unique, "{first:?}");
        let copy = fixture.tag(&untitled(&format!("b{story}"), &edited_news(story, 200, 9, 6)));
        assert_eq!(copy.duplicate_of, Some(id(&format!("a{story}"))), "{copy:?}");
    }
    fixture.tag(&untitled("item", &news(40, 40)));
    // A missing title is unknown, not different.
    assert_eq!(fixture.tag(&untitled("item again", &news(40, 40))).kind, VerdictKind::ExactDuplicate);
    let under_a_title = fixture.tag(&titled("item with a title", &headline(1), &news(40, 40)));
    assert_eq!(under_a_title.kind, VerdictKind::ExactDuplicate);
    fixture.tag(&untitled("stub", STUB));
    for again in [untitled("stub again", STUB), titled("stub with a title", &headline(1), STUB)] {
        let tagged = fixture.tag(&again);
        assert_eq!(tagged.kind, VerdictKind::Unique, "{tagged:?}");
        assert_eq!(tagged.related[0].relation, RelationKind::SameFurniture);
    }
}

#[test]
fn the_name_of_the_site_as_every_title_merges_no_two_stories() {
    let mut fixture = fixture();
    for story in 0..40u64 {
        // The notice that the site puts below every article.
        let body = format!("{} {CONSENT}", news(story, 90));
        let tagged = fixture.tag(&titled(&format!("a{story}"), "The Example Gazette", &body));
        assert_eq!(tagged.kind, VerdictKind::Unique, "story {story}: {tagged:?}");
        let copy = fixture.tag(&titled(&format!("b{story}"), "The Example Gazette", &body));
        assert_eq!(
            (copy.kind, copy.duplicate_of),
            (VerdictKind::ExactDuplicate, Some(id(&format!("a{story}"))))
        );
    }
    assert_eq!(fixture.tag(&titled("word", "The Example Gazette", &word(1))).kind, VerdictKind::Unique);
}

// Eleven digests of other sites' articles came first and hid 38 of 123 originals: each was contained in a
// digest and became a part of it. In a long digest the estimate of that fell below the bound for a third of them, and only the
// first one showed that it was a digest.
#[test]
fn a_digest_hides_at_most_the_article_that_it_begins_with() {
    for (count, words) in [(4, 200), (11, 300)] {
        let mut fixture = fixture();
        let stories: Vec<String> = (1..=count).map(|story| news(story, words)).collect();
        fixture.tag(&titled("digest", "Evening briefing", &stories.join("\n")));
        let mut hidden = Vec::new();
        for (story, body) in (1u64..).zip(&stories).skip(1) {
            let tagged = fixture.tag(&titled(&format!("story-{story}"), &headline(story), body));
            hidden.extend(is_duplicate(&tagged).then_some(tagged));
        }
        assert!(hidden.is_empty(), "{count}: {hidden:?}");
    }
}

#[test]
fn a_text_that_contains_several_articles_is_flagged_and_a_copy_of_none() {
    let mut fixture = fixture();
    let stories: Vec<String> = (1..=3).map(|story| news(story, 200)).collect();
    for (story, body) in (1u64..).zip(&stories) {
        fixture.tag(&titled(&format!("story-{story}"), &headline(story), body));
    }
    let digest = fixture.tag(&titled("digest", "Evening briefing", &stories.join("\n")));
    assert!(!is_duplicate(&digest) && digest.flags.contains(&Flag::Digest), "{digest:?}");
}
