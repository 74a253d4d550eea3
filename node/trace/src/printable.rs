//! Text that a stranger chose, made safe to show: none of it steers a terminal or a log, or hides what it says.

/// The front of a text, on one line. Control characters move the cursor and break lines; those of direction let a reader
/// see digits and names in another order.
pub fn printable(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).map(|c| if is_steering(c) { ' ' } else { c }).collect()
}

fn is_steering(c: char) -> bool {
    let is_direction = matches!(
        c,
        '\u{061c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    // Some programs break lines at the last two as well.
    c.is_control() || is_direction || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal_or_a_reader() {
        let steering = [
            '\n', '\r', '\t', '\x1b', '\u{7f}', '\u{9b}', '\u{061c}', '\u{200e}', '\u{200f}', '\u{2028}',
            '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}',
        ];
        for bad in steering {
            assert_eq!(printable(&format!("a{bad}b"), 9), "a b", "{:x}", bad as u32);
        }
        for good in ["nope", "größer · 5 €", "日本語", "\u{2030}\u{2065}\u{206a}"] {
            assert_eq!(printable(good, 99), good);
        }
        assert_eq!(printable("größer", 3), "grö");
    }
}
