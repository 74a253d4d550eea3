//! The signature of a method, in the one form whose hash is its selector.
//!
//! `ping` and `ping(uint a)` hash to selectors that no contract has, so a job for them would fail at every run.

/// Deepest tuple in a signature.
const DEPTH_MAX: usize = 8;

/// The canonical form of what was probably meant; `None` if that cannot be told. A canonical signature gives itself.
pub fn canonical_method(text: &str) -> Option<String> {
    let mut parser = Parser { rest: text.trim() };
    if let Some(rest) = parser.rest.strip_prefix("function ") {
        parser.rest = rest.trim_start();
    }
    let name = parser.word()?;
    let mut out = name.to_owned();
    parser.space();
    if parser.rest.is_empty() {
        out.push_str("()");
    } else {
        parser.tuple(&mut out, 0)?;
    }
    Some(out)
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    /// `(type, type)`, each with what may follow it in a declaration: a place and a name.
    fn tuple(&mut self, out: &mut String, depth: usize) -> Option<()> {
        self.take('(')?;
        out.push('(');
        self.space();
        if self.take(')').is_none() {
            loop {
                self.parameter(out, depth)?;
                if self.take(',').is_none() {
                    break;
                }
                out.push(',');
                self.space();
            }
            self.take(')')?;
        }
        out.push(')');
        Some(())
    }

    fn parameter(&mut self, out: &mut String, depth: usize) -> Option<()> {
        let word = self.word();
        if self.rest.starts_with('(') && word.is_none_or(|word| word == "tuple") {
            (depth < DEPTH_MAX).then_some(())?;
            self.tuple(out, depth + 1)?;
        } else {
            out.push_str(&elementary(word?)?);
        }
        self.space();
        while self.take('[').is_some() {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            out.push('[');
            out.push_str(&self.rest[..digits]);
            self.rest = &self.rest[digits..];
            self.take(']')?;
            out.push(']');
            self.space();
        }
        while self.word().is_some() {
            self.space();
        }
        Some(())
    }

    /// An identifier of Solidity.
    fn word(&mut self) -> Option<&'t str> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        let length = self.rest.bytes().take_while(is_part).count();
        let (word, rest) = self.rest.split_at(length);
        let is_word = word.bytes().next().is_some_and(|first| !first.is_ascii_digit());
        is_word.then(|| self.rest = rest).map(|()| word)
    }

    fn take(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

/// The canonical name of an elementary type; `None` for any other name: what a contract or struct is encoded as, its
/// name does not say.
fn elementary(word: &str) -> Option<String> {
    let bits = |digits: &str| {
        is_plain(digits) && digits.parse().is_ok_and(|n: u16| n.is_multiple_of(8) && (8..=256).contains(&n))
    };
    let bytes = |digits: &str| is_plain(digits) && digits.parse().is_ok_and(|n: u8| (1..=32).contains(&n));
    let of_size =
        |prefix: &str, is_size: &dyn Fn(&str) -> bool| word.strip_prefix(prefix).is_some_and(is_size);
    let is_known = matches!(word, "address" | "bool" | "string" | "bytes" | "function")
        || of_size("uint", &bits)
        || of_size("int", &bits)
        || of_size("bytes", &bytes);
    match word {
        "uint" | "int" => Some(format!("{word}256")),
        _ => is_known.then(|| word.to_owned()),
    }
}

/// A number has one text.
fn is_plain(digits: &str) -> bool {
    digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arc21_05_canonical_signatures_are_their_own() {
        for signature in [
            "ping()",
            "_a$1()",
            "charge(uint256)",
            "f(uint8,int128,bytes32,bytes,string,bool,address,function)",
            "f(uint256[],address[3][])",
            "f((uint256,(bool,string)[2])[],bytes1)",
        ] {
            assert_eq!(canonical_method(signature).as_deref(), Some(signature));
        }
    }

    #[test]
    fn arc21_05_what_was_probably_meant() {
        for (given, meant) in [
            ("ping", "ping()"),
            (" ping ( ) ", "ping()"),
            ("ping(uint a)", "ping(uint256)"),
            ("f(int, uint[] calldata xs, address payable to)", "f(int256,uint256[],address)"),
            ("f(tuple(uint a, bool) t)", "f((uint256,bool))"),
            ("function f(bytes memory data) external payable", "f(bytes)"),
        ] {
            assert_eq!(canonical_method(given).as_deref(), Some(meant), "{given}");
        }
    }

    #[test]
    fn arc21_05_what_cannot_be_told() {
        for given in [
            "",
            "()",
            "1f()",
            "f(",
            "f)",
            "f(,)",
            "f(uint256,)",
            "f(IERC20)",
            "f(uint7)",
            "f(uint264)",
            "f(uint08)",
            "f(bytes33)",
            "f(bytes0)",
            "f(uint256[)",
            "f(uint256[-1])",
            "0x12345678",
            "f((((((((((bool))))))))))",
        ] {
            assert_eq!(canonical_method(given), None, "{given}");
        }
    }

    proptest! {
        /// Whatever is given: no panic, and what comes out is canonical.
        #[test]
        fn what_is_meant_is_canonical(text in "(f|g1)? ?\\(?(uint|bool|bytes32|tuple|address|x|,|\\(|\\)|\\[|\\]|3| ){0,12}\\)?.{0,3}") {
            if let Some(meant) = canonical_method(&text) {
                prop_assert_eq!(canonical_method(&meant), Some(meant));
            }
        }
    }
}
