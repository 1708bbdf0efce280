//! A table of HTML elements: whether each breaks a line, can stay open, or belongs to the article.
//! `page` and `sniff` look elements up here.

/// The separator between two pieces of text. Ordered: the greater one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// None: they touch, as around `<b>`.
    None,
    /// The edge of a table cell.
    Cell,
    /// The edge of a block.
    Line,
}

/// Why an element's text is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropReason {
    /// Never part of the article: controls, drawings, fallbacks, ruby glosses.
    Hard,
    /// Part of the site, not of the article. Kept if it reads like an article.
    Chrome,
}

/// Where the page itself says that the article is, most reliable first, and where it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landmark {
    /// `itemprop="articleBody"`.
    Body,
    /// `<article>`.
    Article,
    /// `<main>`.
    Main,
    /// `<h1>`: the title, which the event carries in a separate field.
    Headline,
}

/// The properties of one element name.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagKind {
    pub(super) gap: Gap,
    /// Has no content and no end tag.
    pub(super) void: bool,
    /// The content is not markup: the tokenizer skips to this element's end tag.
    pub(super) raw: bool,
    pub(super) drop: Option<DropReason>,
    /// The content is not shown, whether the element is closed or not.
    pub(super) hidden: bool,
    pub(super) landmark: Option<Landmark>,
    /// Authors may omit the end tag; elements of the same group close each other. 0 for all others.
    pub(super) omit: u8,
    /// End tags of other elements do not reach beyond it.
    pub(super) fence: bool,
    /// The content is the text of a link.
    pub(super) link: bool,
    /// The content is foreign markup (SVG, MathML), where `<title/>` is an empty element.
    pub(super) drawing: bool,
}

/// The group of `html`, `head` and `body`, which contain everything and are therefore never dropped.
pub(super) const ROOT: u8 = 1;
/// The group of `p`, which any block closes.
pub(super) const PARAGRAPH: u8 = 2;

const INLINE: TagKind = TagKind {
    gap: Gap::None,
    void: false,
    raw: false,
    drop: None,
    hidden: false,
    landmark: None,
    omit: 0,
    fence: false,
    link: false,
    drawing: false,
};
const BLOCK: TagKind = TagKind { gap: Gap::Line, ..INLINE };
const VOID: TagKind = TagKind { void: true, ..INLINE };
const RAW: TagKind = TagKind { raw: true, ..INLINE };
const HARD: TagKind = TagKind { drop: Some(DropReason::Hard), ..INLINE };
const CHROME: TagKind = TagKind { drop: Some(DropReason::Chrome), ..BLOCK };

impl TagKind {
    /// The properties of `name` (lower case). Unknown names are inline.
    pub(super) fn of_element(name: &[u8]) -> TagKind {
        match name {
            b"br" | b"hr" => TagKind { gap: Gap::Line, ..VOID },
            b"area" | b"base" | b"basefont" | b"bgsound" | b"col" | b"embed" | b"frame" | b"img"
            | b"input" | b"keygen" | b"link" | b"meta" | b"param" | b"source" | b"track" | b"wbr" => VOID,

            b"title" => TagKind { gap: Gap::Line, ..RAW },
            b"script" | b"style" | b"iframe" | b"textarea" | b"noembed" | b"noframes" | b"noscript" => RAW,

            b"svg" | b"math" => TagKind { drawing: true, ..HARD },
            b"template" => TagKind { hidden: true, ..INLINE },
            b"canvas" | b"object" | b"video" | b"audio" => HARD,
            b"button" | b"select" | b"datalist" | b"label" => HARD,
            b"rt" | b"rp" => TagKind { omit: 9, ..HARD },

            b"nav" | b"aside" | b"header" | b"footer" | b"dialog" | b"search" => CHROME,

            b"article" => TagKind { landmark: Some(Landmark::Article), ..BLOCK },
            b"main" => TagKind { landmark: Some(Landmark::Main), ..BLOCK },
            b"h1" => TagKind { landmark: Some(Landmark::Headline), ..BLOCK },
            b"table" => TagKind { fence: true, ..BLOCK },
            b"a" => TagKind { link: true, ..INLINE },

            b"html" | b"head" | b"body" => TagKind { omit: ROOT, ..BLOCK },
            b"p" => TagKind { omit: PARAGRAPH, ..BLOCK },
            b"li" => TagKind { omit: 3, ..BLOCK },
            b"dt" | b"dd" => TagKind { omit: 4, ..BLOCK },
            b"td" | b"th" => TagKind { gap: Gap::Cell, omit: 5, ..INLINE },
            b"tr" => TagKind { omit: 6, ..BLOCK },
            b"thead" | b"tbody" | b"tfoot" | b"caption" | b"colgroup" => TagKind { omit: 7, ..BLOCK },
            b"option" | b"optgroup" => TagKind { omit: 8, ..BLOCK },

            b"address" | b"blockquote" | b"center" | b"details" | b"dir" | b"div" | b"dl" | b"fieldset"
            | b"figcaption" | b"figure" | b"form" | b"frameset" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6"
            | b"hgroup" | b"legend" | b"listing" | b"menu" | b"ol" | b"plaintext" | b"pre" | b"section"
            | b"summary" | b"ul" | b"xmp" => BLOCK,

            _ => INLINE,
        }
    }
}
