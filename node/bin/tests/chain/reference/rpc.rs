//! JSON-RPC's page: every method, then the shapes of what they take and answer.

use super::{
    ROOT, capitalized,
    forms::{WORDLESS, known, shape_of, title, words},
    sources::{Content, Field, Form, Method, Shape, Sources},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};
use syn::Type;

const HEAD: &str = "# JSON-RPC reference

Every method with its parameters and its answer, then the shapes that they name. [The `almanac_` methods](rpc-almanac.md) has examples, [methods](methods.md) says what differs from other nodes, [limits](limits.md#one-call) what one call may cost. Written from the sources of the node by `node/bin/tests/chain/reference`, which CI compares.

An address, a hash and bytes are text in hexadecimal with `0x`; a quantity is a number in hexadecimal without zeroes in front. Parameters are a list, in this order; those that are optional may be left out at its end, or `null`. Every method is served by `almanac dev` and by nodes of a network, unless it says which.
";

pub(super) fn page() -> String {
    let sources = Sources::read();
    let kinds = kinds();
    let mut out = HEAD.to_owned();
    let mut space = "";
    let mut shapes = BTreeMap::new();
    for method in &sources.methods {
        let own = method.name.split('_').next().expect("split returns a part");
        if own != space {
            space = own;
            write!(out, "\n## {space}\n").unwrap();
        }
        write_method(&mut out, method, &kinds, &sources);
        collect(&method.answer, &method.file, &sources, &mut shapes);
        for parameter in &method.parameters {
            collect(&parameter.form, &method.file, &sources, &mut shapes);
            if let Some(shape) = parameter.shape.as_ref().and_then(|path| sources.shape(path, &method.file)) {
                collect_within(shape, &sources, &mut shapes);
            }
        }
    }
    out.push_str("\n## Shapes\n");
    for (name, shape) in shapes {
        write!(out, "\n### {name}\n\n").unwrap();
        if !shape.about.is_empty() {
            writeln!(out, "{}\n", joined(&shape.about)).unwrap();
        }
        write_shape(&mut out, shape, &sources);
    }
    let targets: BTreeSet<String> =
        out.lines().filter_map(|line| Some(line.strip_prefix("### ")?.replace(' ', "-"))).collect();
    let links = out.split("](#").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    links.for_each(|target| assert!(targets.contains(target), "no section {target}"));
    let wordless: BTreeSet<&str> =
        out.lines().filter_map(|line| Some(line.split_once(WORDLESS)?.1)).collect();
    assert!(wordless.is_empty(), "add to the table in forms.rs: {wordless:#?}");
    out
}

/// Where each method is served, by the list that is compared with running nodes: "dev" or "node" where only one has it.
fn kinds() -> BTreeMap<String, &'static str> {
    let text = fs::read_to_string(Path::new(ROOT).join("docs/methods.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let kind = |cells: &str| match cells.split('|').map(str::trim).collect::<Vec<_>>()[..] {
        ["yes", "yes", ..] => "",
        ["yes", ..] => "dev",
        _ => "node",
    };
    rows.map(|(name, cells)| (name.to_owned(), kind(cells))).collect()
}

fn write_method(
    out: &mut String,
    method: &Method,
    kinds: &BTreeMap<String, &'static str>,
    sources: &Sources,
) {
    write!(out, "\n### {}\n\n{}", method.name, joined(&method.about)).unwrap();
    match kinds.get(&method.name).copied() {
        Some("") => {}
        Some("dev") => out.push_str(" Only on a developer chain."),
        Some(_) => out.push_str(" Only on nodes of a network."),
        None => panic!("docs/methods.md lacks {}", method.name),
    }
    if !method.aliases.is_empty() {
        let names: Vec<String> = method.aliases.iter().map(|name| format!("`{name}`")).collect();
        write!(out, " Also {}.", names.join(", ")).unwrap();
    }
    out.push_str("\n\n");
    for parameter in &method.parameters {
        let name = &parameter.name;
        let form = words(&parameter.form, &method.file, sources);
        let optional = form.strip_suffix(" or null");
        let note = if optional.is_some() { ", optional" } else { "" };
        let path = parameter.shape.as_deref();
        if let Some(words) = path.and_then(|path| known(path.rsplit("::").next()?)) {
            writeln!(out, "- `{name}`{note}: {words}").unwrap();
            continue;
        }
        let shape = path.map(|path| {
            sources.shape(path, &method.file).unwrap_or_else(|| panic!("{}: no shape {path}", method.name))
        });
        match shape {
            Some(Shape { content: Content::Fields(fields), file, .. }) => {
                writeln!(out, "- `{name}`{note}: object with any of").unwrap();
                fields.iter().for_each(|field| write_field(out, "  ", field, file, sources));
            }
            Some(Shape { content: Content::Words(all), .. }) => {
                let all: Vec<String> = all.iter().map(|(word, _)| format!("`{word}`")).collect();
                writeln!(out, "- `{name}`{note}: {}", all.join(" or ")).unwrap();
            }
            _ => writeln!(out, "- `{name}`{note}: {}", optional.unwrap_or(&form)).unwrap(),
        }
    }
    writeln!(out, "- answer: {}", words(&method.answer, &method.file, sources)).unwrap();
}

fn write_field(out: &mut String, indent: &str, field: &Field, file: &Path, sources: &Sources) {
    let form = words(&field.form, file, sources);
    let form = if indent.is_empty() { form } else { form.trim_end_matches(" or null").to_owned() };
    let about = if field.about.is_empty() { String::new() } else { format!(". {}", joined(&field.about)) };
    let left_out = if field.is_left_out { ", absent where there is none" } else { "" };
    writeln!(out, "{indent}- `{}`: {form}{left_out}{about}", field.name).unwrap();
}

fn write_shape(out: &mut String, shape: &Shape, sources: &Sources) {
    match &shape.content {
        Content::Fields(fields) => {
            for field in fields {
                let flat = shape_of(&field.form, &shape.file, sources).filter(|_| field.is_flat);
                match flat {
                    Some(flat) => write_shape(out, flat, sources),
                    None if field.is_flat => {
                        let about =
                            if field.about.is_empty() { "More fields." } else { &joined(&field.about) };
                        writeln!(out, "- {about}").unwrap();
                    }
                    None => write_field(out, "", field, &shape.file, sources),
                }
            }
        }
        Content::Words(all) => {
            for (word, about) in all {
                let about = if about.is_empty() { String::new() } else { format!(": {}", joined(about)) };
                writeln!(out, "- `{word}`{about}").unwrap();
            }
        }
        Content::Forms(forms) => {
            let forms: Vec<String> =
                forms.iter().map(|form| form_words(form, &shape.file, sources)).collect();
            writeln!(out, "{}.", capitalized(&forms.join(", or "))).unwrap();
        }
    }
}

fn form_words(form: &Form, file: &Path, sources: &Sources) -> String {
    let part = |(name, form): &(Option<String>, Type)| match name {
        Some(name) => format!("`{name}`: {}", words(form, file, sources)),
        None => words(form, file, sources),
    };
    let kind = form.kind.iter().map(|(field, word)| format!("`{field}`: `{word}`"));
    let parts = kind.chain(form.parts.iter().map(part)).collect::<Vec<_>>().join(", ");
    if form.kind.is_some() {
        return format!("{{ {parts} }}");
    }
    match (&form.tag, form.parts.first()) {
        (Some(tag), None) => format!("`{tag}`"),
        (Some(tag), _) => format!("{{ `{tag}`: {parts} }}"),
        (None, Some((Some(_), _))) => format!("{{ {parts} }}"),
        (None, _) => parts,
    }
}

/// Collects the shapes that a type leads to, and those that they name.
fn collect<'s>(form: &Type, file: &Path, sources: &'s Sources, all: &mut BTreeMap<String, &'s Shape>) {
    let Some(shape) = shape_of(form, file, sources) else { return };
    match all.insert(title(shape), shape) {
        Some(same) if std::ptr::eq(same, shape) => {}
        Some(other) => panic!("{} and {} have one name", other.file.display(), shape.file.display()),
        None => collect_within(shape, sources, all),
    }
}

fn collect_within<'s>(shape: &'s Shape, sources: &'s Sources, all: &mut BTreeMap<String, &'s Shape>) {
    match &shape.content {
        Content::Fields(fields) => {
            for field in fields {
                collect(&field.form, &shape.file, sources, all);
            }
        }
        Content::Forms(forms) => {
            let parts = forms.iter().flat_map(|form| &form.parts);
            parts.for_each(|(_, form)| collect(form, &shape.file, sources, all));
        }
        Content::Words(_) => {}
    }
}

/// A comment's lines as one.
fn joined(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}
