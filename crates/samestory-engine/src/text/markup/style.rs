//! Detects text that a style attribute hides. Style sheets are not read: classes that hide are recognised only by their
//! customary names, in `html`.

/// The effect of an element's own style on the visibility of its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StyleVisibility {
    /// Not drawn, transparent or far off the screen: nothing inside can be seen.
    pub(super) invisible: bool,
    /// Transparent until a script or an animation shows it.
    pub(super) fades_in: bool,
    /// Which of [`VISIBILITY`], [`SIZE`] and [`COLOUR`] hide the text inside …
    pub(super) hides: u8,
    /// … and which show it again: they are inherited, and any inner element may override them.
    pub(super) shows: u8,
}

/// `visibility`, which is inherited.
pub(super) const VISIBILITY: u8 = 1;
/// The font size, which is inherited.
pub(super) const SIZE: u8 = 2;
/// The text colour, which is inherited.
pub(super) const COLOUR: u8 = 4;

/// Pixels beyond the edge that leave nothing visible on any screen.
const FAR: f32 = 500.0;
/// Wider than any page.
const WIDE: f32 = 5000.0;
/// Pixels below which letters are unreadable.
const TINY: f32 = 2.0;

impl StyleVisibility {
    /// Parses the value of a style attribute.
    pub(super) fn read(style: &[u8]) -> StyleVisibility {
        let style = without_comments(&String::from_utf8_lossy(style)).to_ascii_lowercase();
        let rules = StyleRules::parse(&style);
        let (hides, shows) = rules.inherited();
        let transparent = rules.get("opacity").and_then(number).is_some_and(|(value, _)| value < 0.05);
        let moves = ["transition", "animation", "transform", "will-change", "animation-name"];
        let fades_in = transparent && moves.iter().any(|name| rules.get(name).is_some());
        StyleVisibility { invisible: (transparent && !fades_in) || rules.invisible(), fades_in, hides, shows }
    }
}

fn without_comments(style: &str) -> String {
    let mut out = String::with_capacity(style.len());
    let mut rest = style;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// Declarations in source order.
struct StyleRules<'s>(Vec<(&'s str, &'s str, bool)>);

impl<'s> StyleRules<'s> {
    fn parse(style: &'s str) -> StyleRules<'s> {
        let declarations = style.split(';').filter_map(|rule| rule.split_once(':'));
        StyleRules(
            declarations
                .map(|(property, value)| {
                    let value = value.trim();
                    let important = value.strip_suffix("important").map(str::trim_end);
                    match important.and_then(|value| value.strip_suffix('!')) {
                        Some(value) => (property.trim(), value.trim_end(), true),
                        None => (property.trim(), value, false),
                    }
                })
                .collect(),
        )
    }

    /// The declaration that applies: the last important one, or else the last.
    fn get(&self, name: &str) -> Option<&'s str> {
        let own = || self.0.iter().rev().filter(|(property, ..)| *property == name);
        own().find(|(.., important)| *important).or_else(|| own().next()).map(|&(_, value, _)| value)
    }

    fn is(&self, name: &str, values: &[&str]) -> bool {
        self.get(name).is_some_and(|value| values.contains(&value))
    }

    fn pixels(&self, name: &str) -> Option<f32> {
        self.get(name).and_then(pixels)
    }

    fn invisible(&self) -> bool {
        let cut_off =
            ["overflow", "overflow-x", "overflow-y"].iter().any(|name| self.is(name, &["hidden", "clip"]));
        let no_room = || {
            let sides = ["height", "max-height", "width", "max-width"];
            sides.iter().any(|side| self.pixels(side).is_some_and(|pixels| (0.0..TINY).contains(&pixels)))
        };
        let moved = self.get("position").is_some_and(|position| position != "static");
        let away = |side: &str| {
            self.pixels(side)
                .is_some_and(|pixels| pixels <= -FAR || (pixels >= WIDE && matches!(side, "left" | "right")))
        };
        self.is("display", &["none"])
            || self.is("content-visibility", &["hidden"])
            || (cut_off && no_room())
            || (moved && ["left", "right", "top", "bottom"].iter().any(|side| away(side)))
            || (moved && self.get("clip").is_some_and(is_nothing))
            || ["text-indent", "margin-left", "margin-top"].iter().any(|name| away(name))
            || (cut_off
                && self
                    .get("text-indent")
                    .and_then(number)
                    .is_some_and(|(value, unit)| unit == "%" && value >= 100.0))
            || self.get("clip-path").is_some_and(|path| {
                ["inset(50%", "inset(100%", "circle(0"].iter().any(|start| path.starts_with(start))
            })
            || self.get("transform").is_some_and(is_out_of_sight)
    }

    fn inherited(&self) -> (u8, u8) {
        let (mut hides, mut shows) = (0, 0);
        let mut set = |what: u8, hidden: bool| if hidden { hides |= what } else { shows |= what };
        match self.get("visibility") {
            Some("hidden" | "collapse") => set(VISIBILITY, true),
            Some("visible") => set(VISIBILITY, false),
            _ => {}
        }
        match self.get("font-size").map(|size| (size, number(size))) {
            // Relative to the inherited size: zero times two is zero.
            Some((_, Some((value, "em" | "%" | "ex" | "ch")))) if value > 0.0 => {}
            Some((size, Some(_))) => set(SIZE, pixels(size).is_some_and(|pixels| pixels < TINY)),
            Some(("medium" | "small" | "large" | "x-large" | "xx-large" | "x-small", None)) => {
                set(SIZE, false)
            }
            _ => {}
        }
        if self.get("font").is_some_and(|font| font.starts_with("0/") || font.starts_with("0 ")) {
            set(SIZE, true);
        }
        let behind = self.get("background-color").or_else(|| self.get("background")).and_then(colour);
        match self.get("color").map(|value| (value, colour(value))) {
            Some(("inherit" | "unset" | "currentcolor", _)) | None => {}
            Some((_, Some(own))) => set(COLOUR, own.is_transparent() || Some(own) == behind),
            Some((_, None)) => set(COLOUR, false),
        }
        (hides, shows)
    }
}

/// Parses a number and its unit.
fn number(value: &str) -> Option<(f32, &str)> {
    let end = value.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+')).unwrap_or(value.len());
    let (digits, unit) = value.split_at(end);
    Some((digits.parse().ok()?, unit.split_ascii_whitespace().next().unwrap_or("")))
}

/// An approximate length in pixels.
fn pixels(value: &str) -> Option<f32> {
    let (value, unit) = number(value)?;
    let pixels = match unit {
        "px" => 1.0,
        "" if value == 0.0 => 1.0,
        "pt" => 1.33,
        "em" | "rem" | "pc" => 16.0,
        "ex" | "ch" => 8.0,
        "in" => 96.0,
        "cm" => 38.0,
        "mm" => 3.8,
        "vw" | "vh" | "%" => 10.0,
        _ => return None,
    };
    Some(value * pixels)
}

/// An empty clipping rectangle: `rect(0 0 0 0)`, `rect(1px, 1px, 1px, 1px)`.
fn is_nothing(clip: &str) -> bool {
    let Some(sides) = clip.strip_prefix("rect(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let mut sides = sides.split([',', ' ']).filter(|side| !side.is_empty());
    let first = sides.next().and_then(pixels);
    first.is_some() && sides.all(|side| pixels(side) == first)
}

/// Scaled to nothing, or moved off the screen.
fn is_out_of_sight(transform: &str) -> bool {
    let argument = |name: &str| {
        let (_, rest) = transform.split_once(name)?;
        rest.split([',', ')']).next().map(str::trim)
    };
    let pushed = |name: &str| argument(name).and_then(pixels).is_some_and(|pixels| pixels.abs() >= 2.0 * FAR);
    argument("scale(").and_then(number).is_some_and(|(value, _)| value == 0.0)
        || ["translate(", "translatex(", "translatey(", "translate3d("].iter().any(|name| pushed(name))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Colour([u8; 4]);

impl Colour {
    fn is_transparent(self) -> bool {
        self.0[3] == 0
    }
}

/// A literal colour; of the names only the two that pages are printed in.
fn colour(value: &str) -> Option<Colour> {
    let opaque = |[r, g, b]: [u8; 3]| Some(Colour([r, g, b, 255]));
    match value {
        "transparent" => return Some(Colour([0; 4])),
        "white" => return opaque([255; 3]),
        "black" => return opaque([0; 3]),
        _ => {}
    }
    if let Some(digits) = value.strip_prefix('#') {
        let wide: String = match digits.len() {
            3 | 4 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
            _ => digits.to_owned(),
        };
        let byte = |at: usize| wide.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        let alpha = if wide.len() == 8 { byte(6)? } else { 255 };
        return Some(Colour([byte(0)?, byte(2)?, byte(4)?, alpha]));
    }
    let inside = value.strip_prefix("rgba(").or_else(|| value.strip_prefix("rgb("))?.strip_suffix(')')?;
    let mut parts = inside.split([',', ' ', '/']).filter(|part| !part.is_empty()).map(number);
    let mut channel = || parts.next().flatten().map(|(value, _)| value as u8);
    let [r, g, b] = [channel()?, channel()?, channel()?];
    let alpha = parts.next().flatten().map_or(255, |(value, _)| (value * 255.0) as u8);
    Some(Colour([r, g, b, alpha]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(style: &str) -> StyleVisibility {
        StyleVisibility::read(style.as_bytes())
    }

    #[test]
    fn styles_that_hide_text_are_recognised() {
        for style in [
            "display:none",
            "color: red; DISPLAY : None !important; display: block",
            "dis/* */play:none",
            "opacity:0",
            "opacity: 0.0 ;",
            "position:absolute; left:-9999px",
            "position:fixed;top:-100em",
            "position:absolute;left:200vw;left:9999px",
            "text-indent:-9999px",
            "margin-left:-10000px",
            "position:absolute;clip:rect(0 0 0 0)",
            "position:absolute;clip:rect(1px, 1px, 1px, 1px)",
            "clip-path:inset(50%)",
            "height:0;overflow:hidden",
            "width:1px;height:1px;overflow:hidden",
            "transform:scale(0)",
            "transform: translateX(-9999px)",
            "text-indent:100%;overflow:hidden",
            "content-visibility:hidden",
        ] {
            assert!(read(style).invisible, "{style}");
        }
    }

    #[test]
    fn ordinary_styles_hide_nothing() {
        for style in [
            "",
            ";:;",
            "display:block",
            "display:none;display:block",
            "color:#fff;background:#000",
            "position:absolute;left:120px;top:8400px",
            "text-indent:-2em",
            "margin-left:-15px",
            "opacity:1",
            "opacity:0.5",
            "height:0",
            "overflow:hidden;height:300px",
            "font-size:12px;visibility:visible",
            "transform:translate(0, -50%)",
            "clip:rect(0, 100px, 50px, 0);position:absolute",
            "font:12px/1.5 serif",
            "color:white",
        ] {
            let style_read = read(style);
            assert!(!style_read.invisible && style_read.hides == 0, "{style}");
        }
    }

    #[test]
    fn a_section_that_fades_in_is_not_invisible() {
        let faded = read("opacity:0;transform:translate3d(0,20px,0)");
        assert!(faded.fades_in && !faded.invisible);
    }

    #[test]
    fn visibility_size_and_colour_are_inherited_and_can_be_overridden() {
        for (style, hides, shows) in [
            ("visibility:hidden", VISIBILITY, 0),
            ("visibility:visible", 0, VISIBILITY),
            ("font-size:0", SIZE, 0),
            ("font-size:0px", SIZE, 0),
            ("font-size:1px", SIZE, 0),
            ("font:0/0 a", SIZE, 0),
            ("font-size:16px", 0, SIZE),
            ("font-size:2em", 0, 0),
            ("color:transparent", COLOUR, 0),
            ("color:rgba(0, 0, 0, 0)", COLOUR, 0),
            ("color:#FFF;background-color:white", COLOUR, 0),
            ("color:#ffffff;background:rgb(255,255,255)", COLOUR, 0),
            ("color:red", 0, COLOUR),
        ] {
            let read = read(style);
            assert_eq!((read.invisible, read.hides, read.shows), (false, hides, shows), "{style}");
        }
    }
}
