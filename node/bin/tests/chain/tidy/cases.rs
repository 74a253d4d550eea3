//! Numbered cases of the specs, and the tests that carry their numbers.

use crate::tidy::repository::Repository;
use std::collections::BTreeSet;

/// The cases of a spec, as tests name them: `arc21_04`. A source's own list counts too: `arc21_source_case_1`.
pub(crate) fn cases(spec: &str) -> BTreeSet<String> {
    let bold = spec.split("**").skip(1).step_by(2);
    let numbered = bold.filter(|text| is_case(text)).map(|text| text.to_lowercase().replace('-', "_"));
    let mut cases: BTreeSet<String> = numbered.collect();
    // "tests `arc21_source_case_1` … `arc21_source_case_8`"
    let mark = "_source_case_";
    let named: Vec<&str> = spec.split('`').skip(1).step_by(2).filter(|text| text.contains(mark)).collect();
    if let [first, last] = named[..] {
        let number = |name: &str| name.rsplit('_').next().and_then(|digits| digits.parse::<u32>().ok());
        let prefix = first.split(mark).next().unwrap_or_default();
        let numbers = number(first).expect("a number")..=number(last).expect("a number");
        cases.extend(numbers.map(|number| format!("{prefix}{mark}{number}")));
    }
    cases
}

/// `ARC21-04`, or `AIP125-P1`, which a benchmark covers.
fn is_case(text: &str) -> bool {
    let Some((spec, number)) = text.split_once('-') else { return false };
    let number = number.strip_prefix('P').unwrap_or(number);
    let is_spec = spec.starts_with(|c: char| c.is_ascii_uppercase())
        && spec.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    is_spec && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// The names of all tests and benchmarks that are not ignored.
pub(crate) fn tests(repository: &Repository) -> BTreeSet<String> {
    let own = |path: &&String| !path.starts_with("node/bin/tests/chain/tidy/");
    let files = repository.files.iter().filter(|path| path.ends_with(".rs")).filter(own);
    let names: BTreeSet<String> = files.flat_map(|path| tests_of(&repository.read(path))).collect();
    assert!(names.len() > 500, "{} tests", names.len());
    names
}

/// A test is a function with an attribute that ends with `test`, and without `#[ignore]`.
fn tests_of(source: &str) -> Vec<String> {
    let (mut names, mut is_test, mut is_ignored) = (Vec::new(), false, false);
    for line in source.lines().map(str::trim) {
        let attribute = line.strip_prefix("#[");
        if let Some(attribute) = attribute {
            let name = attribute.split(['(', ']', ' ']).next().unwrap_or_default();
            is_test |= name == "test" || name.ends_with("::test");
            is_ignored |= name == "ignore";
        } else if let Some((_, rest)) =
            line.split_once("fn ").filter(|(before, _)| is_before_function(before))
        {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            let is_benchmark = name.split('_').any(|part| part.len() > 1 && is_speed(part));
            if (is_test && !is_ignored) || is_benchmark {
                names.push(name.to_owned());
            }
            (is_test, is_ignored) = (false, false);
        }
    }
    names
}

fn is_before_function(text: &str) -> bool {
    text.split_whitespace().all(|word| ["pub", "pub(crate)", "async"].contains(&word))
}

/// `p1`
fn is_speed(part: &str) -> bool {
    part.strip_prefix('p').is_some_and(|digits| digits.chars().all(|c| c.is_ascii_digit()))
}

/// Complains of cases without a test, and of tests whose number is no case.
pub(crate) fn check(cases: &BTreeSet<String>, tests: &BTreeSet<String>) -> Vec<String> {
    let covers = |test: &str, case: &str| {
        test.split_once(case).is_some_and(|(before, after)| {
            (before.is_empty() || before.ends_with('_')) && (after.is_empty() || after.starts_with('_'))
        })
    };
    let missing = cases.iter().filter(|case| !tests.iter().any(|test| covers(test, case)));
    let mut complaints: Vec<String> = missing.map(|case| format!("no test has {case} in its name")).collect();
    let spec = cases.first().and_then(|case| case.split('_').next()).unwrap_or_default();
    let is_numbered = |test: &&String| {
        let number = test.strip_prefix(spec).and_then(|rest| rest.strip_prefix('_'));
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let strays = tests.iter().filter(is_numbered).filter(|test| !cases.iter().any(|case| covers(test, case)));
    complaints.extend(strays.map(|test| format!("{test}: the spec has no such case")));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "- **ARC21-01** One. **Ruling:** two.\n- **ARC21-02** **AIP125-P1**\n\
        Tests `arc21_source_case_1` … `arc21_source_case_2`.";

    #[test]
    fn cases_are_read() {
        let expected = ["aip125_p1", "arc21_01", "arc21_02", "arc21_source_case_1", "arc21_source_case_2"];
        assert_eq!(cases(SPEC).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn tests_are_read_and_ignored_ones_are_not() {
        let source = "#[test]\nfn arc21_01_a() {}\n#[tokio::test(flavor = \"x\")]\n#[cfg(unix)]\nasync fn b() {}\n\
            #[test]\n#[ignore = \"long\"]\nfn arc21_02_c() {}\nfn arc21_03_helper() {}\nfn aip125_p1_speed() {}\n\
            #[cfg(test)]\nmod tests {}\nfn d() {}\n";
        assert_eq!(tests_of(source), ["arc21_01_a", "b", "aip125_p1_speed"]);
    }

    #[test]
    fn a_case_without_a_test_is_caught() {
        let tests =
            ["arc21_01_a", "arc21_021_b", "x_arc21_source_case_1", "arc21_source_case_2", "arc21_1_c"];
        let tests: BTreeSet<String> = tests.map(str::to_owned).into();
        assert_eq!(
            check(&cases(&SPEC.replace("AIP125-P1", "x")), &tests),
            [
                "no test has arc21_02 in its name",
                "arc21_021_b: the spec has no such case",
                "arc21_1_c: the spec has no such case"
            ]
        );
    }
}
