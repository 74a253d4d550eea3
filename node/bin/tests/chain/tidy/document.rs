//! A document as a list of its code: spans in backquotes, and lines of fenced blocks.

pub(crate) struct Document {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) spans: Vec<Span>,
    /// Targets of links, with their lines.
    pub(crate) links: Vec<(usize, String)>,
}

/// Text that a document shows as code.
pub(crate) struct Span {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// Whether it is a line of a fenced block, which usually is a command.
    pub(crate) is_block: bool,
}

impl Document {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (mut spans, mut links) = (Vec::new(), Vec::new());
        let mut is_block = false;
        // The start of a command that goes on in the next line.
        let mut begun: Option<(usize, String)> = None;
        for (line, content) in (1..).zip(text.lines()) {
            if content.trim_start().starts_with("```") {
                is_block = !is_block;
            } else if is_block {
                let (line, whole) = match begun.take() {
                    Some((line, start)) => (line, start + " " + content.trim()),
                    None => (line, content.to_owned()),
                };
                match whole.strip_suffix('\\') {
                    Some(start) => begun = Some((line, start.trim_end().to_owned())),
                    None => spans.push(Span { line, text: whole, is_block }),
                }
            } else {
                let quoted = content.split('`').skip(1).step_by(2);
                spans.extend(quoted.map(|text| Span { line, text: text.to_owned(), is_block }));
                let targets = content.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
                links.extend(targets.map(|(target, _)| (line, target.to_owned())));
            }
        }
        assert!(!is_block && begun.is_none(), "{path}: a fenced block has no end");
        Self { path: path.to_owned(), text: text.to_owned(), spans, links }
    }
}

#[cfg(test)]
impl Span {
    pub(crate) fn inline(text: &str) -> Self {
        Self { line: 1, text: text.to_owned(), is_block: false }
    }

    pub(crate) fn block(text: &str) -> Self {
        Self { line: 1, text: text.to_owned(), is_block: true }
    }
}

/// The words of a text: runs of letters, digits and `_`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[test]
fn code_is_found_in_lines_and_blocks() {
    let text = "See `a.rs` and [b](b.md#c), `d`.\n```\nalmanac dev \\\n  --port 0\n```\n";
    let document = Document::new("x.md", text);
    let spans: Vec<_> = document.spans.iter().map(|s| (s.line, s.text.as_str(), s.is_block)).collect();
    assert_eq!(spans, [(1, "a.rs", false), (1, "d", false), (3, "almanac dev --port 0", true)]);
    assert_eq!(document.links, [(1, "b.md#c".to_owned())]);
    assert_eq!(words("a_b(c)-d").collect::<Vec<_>>(), ["a_b", "c", "d"]);
}
