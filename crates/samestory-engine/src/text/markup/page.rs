//! The text of a page while its tags go by.
//!
//! **What is left out.** An element that is not the article's (see [`tag`](super::tag)) is written like any other
//! and cut off again *when its own end tag arrives*. One that is never closed, or that its parent's end tag closes,
//! keeps its text: a forgotten `</nav>` costs a menu's worth of noise and never the article. Chrome that reads
//! like an article, [`LONG_BLOCKS`] paragraphs or more, is kept as well, for sites that wrap their story in
//! `<aside>`.
//!
//! **What is hidden** never counts, closed or not: it is not written at all. `<html>` and `<body>` are an exception,
//! because pages hide themselves until their script has run. So is `<div hidden/>`: browsers ignore the slash, but
//! serialisers write an empty element that way, and then the story follows.
//!
//! **What is preferred.** If one `articleBody`, else one `<article>`, else one `<main>` stands out (see
//! [`Page::standing_out`]), the page is that element. The first `<h1>` in it is the title, not the body: feeds that
//! carry the same article as plain text do not repeat it.
//!
//! **What bounds it.** Open elements are a list of at most [`DEPTH`]; deeper ones are only counted, so their text is
//! still text but nothing in them is left out. Text that is cut off was written once, so the work stays linear.

use super::TooLarge;
use super::tag::{Gap, Kind, Landmark, PARAGRAPH, ROOT, Why};

/// Elements open at once that are told apart; the depth at which browsers stop nesting, too.
const DEPTH: usize = 512;
// The next four are judgement: our corpora hold texts, not the pages they came from.

/// Paragraphs of [`LONG_BLOCK`] bytes that make chrome an article: more than a legal footer or a consent box has.
const LONG_BLOCKS: usize = 5;
/// Bytes outside of links that make a block a paragraph rather than a caption or a teaser.
const LONG_BLOCK: usize = 200;
/// Bytes below which an element is a card or a caption and does not stand for the page.
const STANDS_OUT: usize = 500;
/// Bytes above which a heading is no headline: 200 letters in scripts of three bytes a letter.
const HEADLINE: usize = 600;

/// What a start tag's attributes say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints {
    /// Navigation, banner, advertisement: not the article's.
    pub(super) chrome: bool,
    /// Not shown, nor anything inside.
    pub(super) hidden: bool,
    /// Inherited properties that hide text from here on, and those that show it again.
    pub(super) hides: u8,
    pub(super) shows: u8,
    /// Has the attribute `open`: a dialogue that is shown.
    pub(super) open: bool,
    /// The attributes name a place the element's own name does not.
    pub(super) landmark: Option<Landmark>,
}

struct Open {
    name: u32,
    kind: Kind,
    cut: Option<Cut>,
    landmark: Option<Landmark>,
    hidden: bool,
    /// [`Page::unseen`] around it.
    unseen: u8,
}

/// Everything needed to forget an element's text.
#[derive(Clone, Copy)]
struct Cut {
    why: Why,
    len: usize,
    gap: Gap,
    long: usize,
    prose: usize,
    floor: usize,
}

#[derive(Default)]
struct Spans {
    open: usize,
    start: usize,
    done: Vec<(usize, usize)>,
}

/// Text being collected, and what is open around it.
pub(super) struct Page {
    limit: usize,
    out: Vec<u8>,
    gap: Gap,
    open: Vec<Open>,
    /// How many of them have a name whose hash ends in this byte: most stray end tags need no search.
    names: [u16; 256],
    /// Elements open beyond [`DEPTH`].
    beyond: usize,
    /// Inside a raw element: nothing is text until it ends.
    raw: bool,
    /// Elements open that are not shown.
    hidden: usize,
    /// Inherited properties that hide text here.
    unseen: u8,
    /// The level beyond [`DEPTH`] at which an element is not shown.
    veil: Option<usize>,
    links: usize,
    drawings: usize,
    /// Bytes of the current block outside of links. Counted also when they do not fit, so that a limit never changes
    /// what the text is, only whether there is one.
    prose: usize,
    /// Long blocks so far.
    long: usize,
    /// Whitespace before this belongs to text that a cut must be able to return to.
    floor: usize,
    spans: [Spans; 4],
    /// Text did not fit, but all that did not is inside `open[i]`, which may yet be cut off.
    spilled: Option<usize>,
    too_large: bool,
}

impl Page {
    pub(super) fn new(limit: usize) -> Self {
        Page {
            limit,
            out: Vec::new(),
            gap: Gap::None,
            open: Vec::new(),
            names: [0; 256],
            beyond: 0,
            raw: false,
            hidden: 0,
            unseen: 0,
            veil: None,
            links: 0,
            drawings: 0,
            prose: 0,
            long: 0,
            floor: 0,
            spans: Default::default(),
            spilled: None,
            too_large: false,
        }
    }

    /// The limit has been passed for certain: nothing that follows can change it.
    pub(super) fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// Ends a raw element that did not end itself.
    pub(super) fn end_raw(&mut self) {
        self.raw = false;
    }

    /// Text between tags. Pieces may end inside a character; together they do not.
    pub(super) fn text(&mut self, mut piece: &[u8]) {
        if self.raw || self.hidden > 0 || self.unseen != 0 || self.veil.is_some() {
            return;
        }
        if self.gap > Gap::None {
            piece = piece.trim_ascii_start();
            if piece.is_empty() {
                return;
            }
            if !self.out.is_empty() {
                self.write(if self.gap == Gap::Line { b"\n" } else { b"\t" });
            }
            self.gap = Gap::None;
            self.write(piece);
        } else {
            self.write(piece);
        }
        if self.links == 0 {
            self.prose += piece.len();
        }
    }

    /// A block's or a cell's edge.
    pub(super) fn separate(&mut self, gap: Gap) {
        if gap == Gap::None || self.hidden > 0 {
            return;
        }
        while self.out.len() > self.floor && self.out.last().is_some_and(u8::is_ascii_whitespace) {
            self.out.pop();
        }
        if gap == Gap::Line {
            self.long += usize::from(self.prose >= LONG_BLOCK);
            self.prose = 0;
        }
        self.gap = self.gap.max(gap);
    }

    /// A start tag. True if its content is raw and the tokenizer must look for its end.
    pub(super) fn start(&mut self, name: &[u8], hints: Hints, self_closing: bool) -> bool {
        let kind = Kind::of(name);
        let landmark = hints.landmark.or(kind.landmark);
        self.end_implied(kind);
        if kind.gap == Gap::Line {
            // A block ends a paragraph.
            self.lift_veil(self.beyond);
        }
        self.separate(if landmark.is_some() { Gap::Line } else { kind.gap });
        if kind.void {
            return false;
        }
        if kind.raw {
            let empty = self_closing && self.drawings > 0;
            self.raw = !empty;
            return !empty;
        }
        // Browsers ignore the slash; writers of XHTML mean it. Not opening anything errs towards keeping text.
        if self_closing {
            return false;
        }
        let why = match kind.drop {
            // A story has a header of its own.
            Some(Why::Chrome) if name == b"header" && !hints.chrome && self.in_place() => None,
            None if hints.chrome && !is_place(landmark) && kind.omit != ROOT => Some(Why::Chrome),
            of_name => of_name,
        };
        let (mut hidden, mut unseen) = (false, self.unseen);
        if kind.omit != ROOT {
            hidden = kind.hidden || hints.hidden || (name == b"dialog" && !hints.open);
            unseen = (self.unseen & !hints.shows) | hints.hides;
        }
        // An end tag that may be missing cannot be waited for, unless something hangs on it.
        if kind.omit > 0 && why.is_none() && landmark.is_none() && !hidden && unseen == self.unseen {
            return false;
        }
        if self.open.len() == DEPTH {
            self.beyond += usize::from(kind.omit == 0);
            if hidden || unseen != 0 {
                let level = self.beyond + usize::from(kind.omit > 0);
                self.veil = self.veil.or(Some(level));
            }
            return false;
        }
        let cut = why.map(|why| Cut {
            why,
            len: self.out.len(),
            gap: self.gap,
            long: self.long,
            prose: self.prose,
            floor: self.floor,
        });
        if let Some(cut) = cut {
            self.floor = cut.len;
        }
        if let Some(landmark) = landmark {
            let spans = &mut self.spans[landmark as usize];
            if spans.open == 0 {
                spans.start = self.out.len();
            }
            spans.open += 1;
        }
        self.links += usize::from(kind.link);
        self.drawings += usize::from(kind.drawing);
        let name = hash(name);
        self.names[usize::from(name as u8)] += 1;
        self.open.push(Open { name, kind, cut, landmark, hidden, unseen: self.unseen });
        self.hidden += usize::from(hidden);
        self.unseen = unseen;
        false
    }

    /// An end tag.
    pub(super) fn end(&mut self, name: &[u8]) {
        let kind = Kind::of(name);
        self.separate(kind.gap);
        if kind.raw {
            self.raw = false;
        }
        if kind.void || kind.raw {
            return;
        }
        if self.beyond > 0 && kind.omit == 0 {
            self.beyond -= 1;
            self.lift_veil(self.beyond);
            return;
        }
        self.lift_veil(self.beyond);
        let hash = hash(name);
        if self.names[usize::from(hash as u8)] == 0 {
            return;
        }
        for i in (0..self.open.len()).rev() {
            let open = &self.open[i];
            if open.name == hash {
                self.close_above(i + 1);
                self.close(true);
                return;
            }
            // As in a browser, a stray end tag does nothing: `</b>` ends no `<div>`, and no cell's `</div>` ends the
            // box around its table. Lists fence off the items around them.
            let inline = kind.gap == Gap::None && kind.drop.is_none();
            let item = kind.omit > 0 && kind.omit != PARAGRAPH;
            let stays = open.kind.fence || (open.kind.gap == Gap::Line && (inline || item));
            if stays && !kind.hidden {
                return;
            }
        }
    }

    /// The text.
    pub(super) fn finish(mut self) -> Result<String, TooLarge> {
        self.separate(Gap::Line);
        self.close_above(0);
        if self.too_large {
            return Err(TooLarge { limit: self.limit });
        }
        let body = self.standing_out();
        let (start, end) = body.unwrap_or((0, self.out.len()));
        let headings = &self.spans[Landmark::Headline as usize].done;
        let headline = headings.iter().copied().find(|span| start <= span.0 && span.1 <= end);
        self.out.truncate(end);
        if let Some((from, to)) = headline.filter(|(from, to)| self.is_headline(to - from, start)) {
            self.out.drain(from..to);
        }
        self.out.drain(..start);
        if body.or(headline).is_some() {
            let blank = self.out.len() - self.out.trim_ascii_start().len();
            self.out.drain(..blank);
        }
        // Pieces come from a string and cuts fall between tags, so this never replaces anything.
        Ok(String::from_utf8(self.out)
            .unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned()))
    }

    /// The one element that stands for the page: the longest of its sort, twice as long as the next (or they are
    /// cards or comments), and at least a third of all text (or the story is told elsewhere).
    fn standing_out(&self) -> Option<(usize, usize)> {
        self.spans[..Landmark::Headline as usize].iter().find_map(|spans| {
            let length = |span: &(usize, usize)| span.1.saturating_sub(span.0);
            let best = *spans.done.iter().max_by_key(|span| length(span))?;
            let rest = spans.done.iter().filter(|span| **span != best).map(length).max().unwrap_or(0);
            let most = length(&best);
            (most >= STANDS_OUT && most >= 2 * rest && most >= self.out.len() / 3).then_some(best)
        })
    }

    /// Whether a first heading of `length` is the title of a text from `start`: short, and not most of what there is.
    fn is_headline(&self, length: usize, start: usize) -> bool {
        length <= HEADLINE && (self.out.len() - start) / 3 >= length
    }

    fn in_place(&self) -> bool {
        self.spans[..Landmark::Headline as usize].iter().any(|spans| spans.open > 0)
    }

    /// Ends what a start tag of `next` ends without saying so: `<li>` an `<li>`, a block a `<p>`.
    fn end_implied(&mut self, next: Kind) {
        // An inline element that was left open must not keep a hidden paragraph open.
        if (self.hidden > 0 || self.unseen != 0) && next.gap == Gap::Line {
            let inline = |open: &Open| open.kind.gap == Gap::None && open.kind.omit == 0 && !open.hidden;
            if let Some(at) = self.open.iter().rposition(|open| !inline(open))
                && self.open[at].kind.omit == PARAGRAPH
            {
                self.close_above(at + 1);
            }
        }
        let Some(top) = self.open.last() else { return };
        let omit = top.kind.omit;
        if omit > 0 && (omit == next.omit || (omit == PARAGRAPH && next.gap == Gap::Line && !next.void)) {
            self.separate(top.kind.gap);
            self.close(true);
        }
    }

    /// What is open at `level` beyond [`DEPTH`], or further out, is shown if what was hidden is further in.
    fn lift_veil(&mut self, level: usize) {
        self.veil = self.veil.filter(|&veiled| veiled <= level);
    }

    fn close_above(&mut self, keep: usize) {
        while self.open.len() > keep {
            self.close(false);
        }
    }

    /// Ends the innermost element: by its own end tag, or because something around it ended.
    fn close(&mut self, own_end: bool) {
        let Some(element) = self.open.pop() else { return };
        let index = self.open.len();
        self.names[usize::from(element.name as u8)] -= 1;
        self.links -= usize::from(element.kind.link);
        self.drawings -= usize::from(element.kind.drawing);
        self.hidden -= usize::from(element.hidden);
        self.unseen = element.unseen;
        if let Some(landmark) = element.landmark {
            self.separate(Gap::Line);
            let spans = &mut self.spans[landmark as usize];
            spans.open -= 1;
            if spans.open == 0 && self.out.len() > spans.start {
                spans.done.push((spans.start, self.out.len()));
            }
        }
        let Some(cut) = element.cut else { return };
        self.floor = cut.floor;
        let ended = own_end || element.kind.omit > 0;
        let article = cut.why == Why::Chrome && self.long - cut.long >= LONG_BLOCKS;
        if ended && !article {
            self.forget(&cut, element.kind.gap);
            if self.spilled == Some(index) {
                self.spilled = None;
            }
        } else if self.spilled == Some(index) {
            self.spill();
        }
    }

    fn forget(&mut self, cut: &Cut, gap: Gap) {
        self.out.truncate(cut.len);
        self.gap = cut.gap.max(gap);
        self.long = cut.long;
        self.prose = cut.prose;
        for spans in &mut self.spans {
            while spans.done.last().is_some_and(|span| span.1 > cut.len) {
                spans.done.pop();
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.spilled.is_some() || self.too_large {
            return;
        }
        if self.out.len() + bytes.len() > self.limit {
            self.spill();
        } else {
            self.out.extend_from_slice(bytes);
        }
    }

    /// Text did not fit. It may not have to: the innermost element that may be cut off decides.
    fn spill(&mut self) {
        self.spilled = self.open.iter().rposition(|open| open.cut.is_some());
        self.too_large = self.spilled.is_none();
    }
}

/// Whether this is where the article may be.
fn is_place(landmark: Option<Landmark>) -> bool {
    landmark.is_some_and(|landmark| landmark != Landmark::Headline)
}

/// FNV-1a: names are compared, never trusted, so a forged collision only ends an element early.
const fn hash(name: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut i = 0;
    while i < name.len() {
        hash = (hash ^ name[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    hash
}
