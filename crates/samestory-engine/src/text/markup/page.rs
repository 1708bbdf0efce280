//! Collects the text of a page while its tags go by. The HTML and Markdown readers feed it; the element
//! properties come from [`tag`](super::tag).
//!
//! **Dropped.** The text of an element outside the article is written like any other and removed *when its
//! own end tag arrives*. An element that is never closed, or is closed by its parent's end tag, keeps its
//! text: a forgotten `</nav>` costs a menu's worth of noise and never the article. Chrome that reads like an
//! article, with [`LONG_BLOCKS`] paragraphs or more, is kept as well, for sites that wrap their story in
//! `<aside>`.
//!
//! **Hidden.** Hidden text is never written, whether its element is closed or not. `<html>` and `<body>` are
//! exceptions, because pages hide themselves until their script has run. So is `<div hidden/>`: browsers
//! ignore the slash, but serialisers write an empty element that way, and then the story follows.
//!
//! **Preferred.** If one `articleBody`, else one `<article>`, else one `<main>` dominates (see
//! [`PageText::main_element`]), the page is that element. The first `<h1>` in it is the title, not part of
//! the body: feeds that carry the same article as plain text do not repeat it.
//!
//! **Bounded.** At most [`DEPTH`] open elements are listed; deeper ones are only counted, so their text is
//! kept but nothing in them is dropped. Removed text was written once, so the work stays linear.

use super::TooLarge;
use super::tag::{DropReason, Gap, Landmark, PARAGRAPH, ROOT, TagKind};

/// Open elements that are tracked individually; browsers stop nesting at this depth too.
const DEPTH: usize = 512;
// The next four are judgement calls: our corpora hold texts, not the pages they came from.

/// Paragraphs of [`LONG_BLOCK`] bytes that make chrome an article: more than a legal footer or a consent box
/// has.
const LONG_BLOCKS: usize = 5;
/// Bytes outside links that make a block a paragraph rather than a caption or a teaser.
const LONG_BLOCK: usize = 200;
/// Below this many bytes an element is a card or a caption and cannot represent the page.
const MIN_MAIN_ELEMENT: usize = 500;
/// Above this many bytes a heading is not a headline: 200 letters in scripts of three bytes per letter.
const HEADLINE: usize = 600;

/// Hints from the attributes of a start tag.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints {
    /// Navigation, banner, advertisement: not part of the article.
    pub(super) chrome: bool,
    /// Neither it nor anything inside is shown.
    pub(super) hidden: bool,
    /// Inherited properties that hide the text inside, and those that show it again.
    pub(super) hides: u8,
    pub(super) shows: u8,
    /// Has the attribute `open`: a dialog that is shown.
    pub(super) open: bool,
    /// A landmark named by the attributes instead of the element name.
    pub(super) landmark: Option<Landmark>,
}

struct OpenElement {
    name: u32,
    kind: TagKind,
    cut: Option<Rollback>,
    landmark: Option<Landmark>,
    hidden: bool,
    /// [`PageText::hidden_by_inheritance`] outside it.
    hidden_by_inheritance: u8,
}

/// Everything needed to remove an element's text again.
#[derive(Clone, Copy)]
struct Rollback {
    reason: DropReason,
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

/// The text collected so far, and the elements open around it.
pub(super) struct PageText {
    limit: usize,
    out: Vec<u8>,
    gap: Gap,
    open: Vec<OpenElement>,
    /// Open elements by the last byte of their name's hash, so that most stray end tags need no search.
    names: [u16; 256],
    /// Open elements beyond [`DEPTH`].
    beyond: usize,
    /// Inside a raw element: nothing is text until it ends.
    raw: bool,
    /// Open elements that are not shown.
    hidden: usize,
    /// Inherited properties that hide text here.
    hidden_by_inheritance: u8,
    /// The level beyond [`DEPTH`] at which an element is hidden.
    hidden_beyond: Option<usize>,
    links: usize,
    drawings: usize,
    /// Bytes of the current block outside links. They count even if they do not fit, so that the limit never
    /// changes what the text is, only whether there is one.
    prose: usize,
    /// Long blocks so far.
    long: usize,
    /// White space before this offset belongs to text that a rollback returns to.
    floor: usize,
    spans: [Spans; 4],
    /// Some text did not fit, but all of it is inside `open[i]`, which may still be dropped.
    spilled: Option<usize>,
    too_large: bool,
}

impl PageText {
    pub(super) fn new(limit: usize) -> Self {
        PageText {
            limit,
            out: Vec::new(),
            gap: Gap::None,
            open: Vec::new(),
            names: [0; 256],
            beyond: 0,
            raw: false,
            hidden: 0,
            hidden_by_inheritance: 0,
            hidden_beyond: None,
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

    /// The text is certainly too large: nothing that follows can change that.
    pub(super) fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// Ends a raw element that was not closed.
    pub(super) fn end_raw(&mut self) {
        self.raw = false;
    }

    /// Adds text between tags. Pieces may end inside a character; together they do not.
    pub(super) fn text(&mut self, mut piece: &[u8]) {
        if self.raw || self.hidden > 0 || self.hidden_by_inheritance != 0 || self.hidden_beyond.is_some() {
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

    /// Marks the edge of a block or cell.
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

    /// Handles a start tag. Returns true if the content is raw and the tokenizer must look for its end.
    pub(super) fn start(&mut self, name: &[u8], hints: Hints, self_closing: bool) -> bool {
        let kind = TagKind::of_element(name);
        let landmark = hints.landmark.or(kind.landmark);
        self.end_implied(kind);
        if kind.gap == Gap::Line {
            // A block closes a paragraph.
            self.show_again(self.beyond);
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
        // Browsers ignore the slash; authors of XHTML mean it. Not opening the element errs towards keeping
        // text.
        if self_closing {
            return false;
        }
        let reason = match kind.drop {
            // A story has a header of its own.
            Some(DropReason::Chrome) if name == b"header" && !hints.chrome && self.in_landmark() => None,
            None if hints.chrome && !may_hold_article(landmark) && kind.omit != ROOT => {
                Some(DropReason::Chrome)
            }
            by_name => by_name,
        };
        let (mut hidden, mut hidden_by_inheritance) = (false, self.hidden_by_inheritance);
        if kind.omit != ROOT {
            hidden = kind.hidden || hints.hidden || (name == b"dialog" && !hints.open);
            hidden_by_inheritance = (self.hidden_by_inheritance & !hints.shows) | hints.hides;
        }
        // An end tag that may be omitted cannot be awaited, unless something depends on it.
        if kind.omit > 0
            && reason.is_none()
            && landmark.is_none()
            && !hidden
            && hidden_by_inheritance == self.hidden_by_inheritance
        {
            return false;
        }
        if self.open.len() == DEPTH {
            self.beyond += usize::from(kind.omit == 0);
            if hidden || hidden_by_inheritance != 0 {
                let level = self.beyond + usize::from(kind.omit > 0);
                self.hidden_beyond = self.hidden_beyond.or(Some(level));
            }
            return false;
        }
        let cut = reason.map(|reason| Rollback {
            reason,
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
        self.open.push(OpenElement {
            name,
            kind,
            cut,
            landmark,
            hidden,
            hidden_by_inheritance: self.hidden_by_inheritance,
        });
        self.hidden += usize::from(hidden);
        self.hidden_by_inheritance = hidden_by_inheritance;
        false
    }

    /// Handles an end tag.
    pub(super) fn end(&mut self, name: &[u8]) {
        let kind = TagKind::of_element(name);
        self.separate(kind.gap);
        if kind.raw {
            self.raw = false;
        }
        if kind.void || kind.raw {
            return;
        }
        if self.beyond > 0 && kind.omit == 0 {
            self.beyond -= 1;
            self.show_again(self.beyond);
            return;
        }
        self.show_again(self.beyond);
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
            // As in a browser, a stray end tag does nothing: `</b>` closes no `<div>`, and a `</div>` inside
            // a cell does not close the box around its table. Lists shield the items around them.
            let inline = kind.gap == Gap::None && kind.drop.is_none();
            let item = kind.omit > 0 && kind.omit != PARAGRAPH;
            let stays = open.kind.fence || (open.kind.gap == Gap::Line && (inline || item));
            if stays && !kind.hidden {
                return;
            }
        }
    }

    /// Returns the collected text.
    pub(super) fn finish(mut self) -> Result<String, TooLarge> {
        self.separate(Gap::Line);
        self.close_above(0);
        if self.too_large {
            return Err(TooLarge { limit: self.limit });
        }
        let body = self.main_element();
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

    /// The element that represents the page: the longest of its sort, twice as long as the next (otherwise
    /// they are cards or comments), and at least a third of all text (otherwise the story is elsewhere).
    fn main_element(&self) -> Option<(usize, usize)> {
        self.spans[..Landmark::Headline as usize].iter().find_map(|spans| {
            let length = |span: &(usize, usize)| span.1.saturating_sub(span.0);
            let best = *spans.done.iter().max_by_key(|span| length(span))?;
            let rest = spans.done.iter().filter(|span| **span != best).map(length).max().unwrap_or(0);
            let most = length(&best);
            (most >= MIN_MAIN_ELEMENT && most >= 2 * rest && most >= self.out.len() / 3).then_some(best)
        })
    }

    /// True if a first heading of `length` is the title of the text from `start`: short, and not most of it.
    fn is_headline(&self, length: usize, start: usize) -> bool {
        length <= HEADLINE && (self.out.len() - start) / 3 >= length
    }

    fn in_landmark(&self) -> bool {
        self.spans[..Landmark::Headline as usize].iter().any(|spans| spans.open > 0)
    }

    /// Closes elements that a start tag of `next` closes implicitly: `<li>` an `<li>`, a block a `<p>`.
    fn end_implied(&mut self, next: TagKind) {
        // An unclosed inline element must not keep a hidden paragraph open.
        if (self.hidden > 0 || self.hidden_by_inheritance != 0) && next.gap == Gap::Line {
            let inline =
                |open: &OpenElement| open.kind.gap == Gap::None && open.kind.omit == 0 && !open.hidden;
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

    /// Shows text again from `level` beyond [`DEPTH`] outwards, if the hidden element was further in.
    fn show_again(&mut self, level: usize) {
        self.hidden_beyond = self.hidden_beyond.filter(|&hidden_level| hidden_level <= level);
    }

    fn close_above(&mut self, keep: usize) {
        while self.open.len() > keep {
            self.close(false);
        }
    }

    /// Closes the innermost element: by its own end tag, or because an outer element ended.
    fn close(&mut self, own_end: bool) {
        let Some(element) = self.open.pop() else { return };
        let index = self.open.len();
        self.names[usize::from(element.name as u8)] -= 1;
        self.links -= usize::from(element.kind.link);
        self.drawings -= usize::from(element.kind.drawing);
        self.hidden -= usize::from(element.hidden);
        self.hidden_by_inheritance = element.hidden_by_inheritance;
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
        let article = cut.reason == DropReason::Chrome && self.long - cut.long >= LONG_BLOCKS;
        if ended && !article {
            self.forget(&cut, element.kind.gap);
            if self.spilled == Some(index) {
                self.spilled = None;
            }
        } else if self.spilled == Some(index) {
            self.spill();
        }
    }

    fn forget(&mut self, cut: &Rollback, gap: Gap) {
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

    /// Records that text did not fit. It only matters if the innermost droppable element around it is kept.
    fn spill(&mut self) {
        self.spilled = self.open.iter().rposition(|open| open.cut.is_some());
        self.too_large = self.spilled.is_none();
    }
}

/// True if the article may be inside this landmark.
fn may_hold_article(landmark: Option<Landmark>) -> bool {
    landmark.is_some_and(|landmark| landmark != Landmark::Headline)
}

/// FNV-1a: names are only compared, never trusted, so a forged collision merely closes an element early.
const fn hash(name: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut i = 0;
    while i < name.len() {
        hash = (hash ^ name[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    hash
}
