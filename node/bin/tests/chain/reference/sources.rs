//! Methods and shapes as the sources of JSON-RPC declare them.

use super::ROOT;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use syn::{
    Attribute, Expr, FnArg, GenericArgument, Item, Lit, Meta, Pat, PathArguments, ReturnType, TraitItem, Type,
};

/// Where methods and the shapes of their answers are.
const DIRECTORIES: [&str; 3] = ["node/rpc/src", "node/proof/src", "node/trace/src"];

/// A method with its parameters.
pub(super) struct Method {
    pub(super) name: String,
    pub(super) aliases: Vec<String>,
    pub(super) about: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) answer: Type,
    /// The file that declares it.
    pub(super) file: PathBuf,
}

/// A parameter. Its shape, where the method reads it from JSON itself, stands in the method's description.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) form: Type,
    pub(super) shape: Option<String>,
}

/// A struct or an enum that is read from JSON or written to it.
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) content: Content,
    pub(super) file: PathBuf,
}

pub(super) enum Content {
    Fields(Vec<Field>),
    /// One of these words.
    Words(Vec<(String, String)>),
    /// One of these forms.
    Forms(Vec<Form>),
}

/// One form of several.
pub(super) struct Form {
    /// The name of the only field that it is in.
    pub(super) tag: Option<String>,
    /// A field that says which form it is, and the word for this one.
    pub(super) kind: Option<(String, String)>,
    /// Its fields, or one without a name.
    pub(super) parts: Vec<(Option<String>, Type)>,
}

pub(super) struct Field {
    pub(super) name: String,
    pub(super) form: Type,
    pub(super) about: String,
    /// The fields of its form stand in its place.
    pub(super) is_flat: bool,
    /// Absent where it is empty.
    pub(super) is_left_out: bool,
}

/// What the sources declare.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) methods: Vec<Method>,
    pub(super) shapes: Vec<Shape>,
    /// Second names of types.
    pub(super) names: BTreeMap<String, Type>,
}

impl Sources {
    pub(super) fn read() -> Self {
        let mut all = Self::default();
        DIRECTORIES.iter().for_each(|directory| all.visit(&Path::new(ROOT).join(directory)));
        all.methods.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// A shape by the name that `file` has for it: its own, one of the module that the name says, or the only one.
    pub(super) fn shape(&self, name: &str, file: &Path) -> Option<&Shape> {
        let (module, name) =
            name.rsplit_once("::").map_or((None, name), |(module, name)| (Some(module), name));
        let is_of = |shape: &&Shape, module: &str| {
            let last = module.rsplit("::").next().unwrap_or(module);
            shape.file.with_extension("").ends_with(last) || shape.file.with_file_name("").ends_with(last)
        };
        let named: Vec<&Shape> = self.shapes.iter().filter(|shape| shape.name == name).collect();
        if let Some(module) = module {
            return named.into_iter().find(|shape| is_of(shape, module));
        }
        if let Some(own) = named.iter().find(|shape| shape.file == file) {
            return Some(own);
        }
        assert!(named.len() <= 1, "{name} in {} may be one of {}", file.display(), named.len());
        named.first().copied()
    }

    fn visit(&mut self, directory: &Path) {
        let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.visit(&path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let file =
                    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                file.items.iter().for_each(|item| self.take(item, &path));
            }
        }
    }

    fn take(&mut self, item: &Item, file: &Path) {
        match item {
            Item::Trait(api) if is_marked(&api.attrs, "rpc") => {
                let functions = api.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(function) => Some(function),
                    _ => None,
                });
                self.methods.extend(functions.filter_map(|function| method(function, file)));
            }
            Item::Struct(declared) if is_json(&declared.attrs) => {
                let rule = rename_rule(&declared.attrs);
                let fields = match &declared.fields {
                    syn::Fields::Named(fields) => {
                        Content::Fields(fields.named.iter().filter_map(|one| field(one, &rule)).collect())
                    }
                    syn::Fields::Unnamed(fields) => {
                        let parts = fields.unnamed.iter().map(|one| (None, one.ty.clone()));
                        Content::Forms(vec![Form { tag: None, kind: None, parts: parts.collect() }])
                    }
                    syn::Fields::Unit => Content::Fields(Vec::new()),
                };
                self.add(&declared.ident.to_string(), &declared.attrs, fields, file);
            }
            Item::Enum(declared) if is_json(&declared.attrs) => {
                let rule = rename_rule(&declared.attrs);
                let content = if declared.variants.iter().all(|one| one.fields.is_empty()) {
                    let word = |one: &syn::Variant| {
                        (
                            renamed(&one.attrs).unwrap_or_else(|| cased(&one.ident.to_string(), &rule)),
                            about(&one.attrs),
                        )
                    };
                    Content::Words(declared.variants.iter().map(word).collect())
                } else {
                    Content::Forms(declared.variants.iter().map(|one| form(one, &declared.attrs)).collect())
                };
                self.add(&declared.ident.to_string(), &declared.attrs, content, file);
            }
            Item::Type(declared) => {
                self.names.insert(declared.ident.to_string(), (*declared.ty).clone());
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &str, attributes: &[Attribute], content: Content, file: &Path) {
        self.shapes.push(Shape {
            name: name.to_owned(),
            about: about(attributes),
            content,
            file: file.to_owned(),
        });
    }
}

fn method(function: &syn::TraitItemFn, file: &Path) -> Option<Method> {
    let attribute = function.attrs.iter().find(|one| one.path().is_ident("method"))?;
    let (mut name, mut aliases) = (None, Vec::new());
    attribute
        .parse_nested_meta(|meta| {
            match meta.path.get_ident().map(ToString::to_string).as_deref() {
                Some("name") => name = Some(meta.value()?.parse::<syn::LitStr>()?.value()),
                Some("aliases") => {
                    let list: syn::ExprArray = meta.value()?.parse()?;
                    aliases = list.elems.iter().map(text).collect();
                }
                _ => {
                    if meta.input.peek(syn::Token![=]) {
                        meta.value()?.parse::<Expr>()?;
                    }
                }
            }
            Ok(())
        })
        .unwrap();
    let (about, shapes) = without_shapes(&about(&function.attrs));
    let parameters = function.sig.inputs.iter().filter_map(|input| {
        let FnArg::Typed(typed) = input else { return None };
        let Pat::Ident(pattern) = &*typed.pat else { return None };
        let name = cased(&pattern.ident.to_string(), "camelCase");
        let shape = shapes.get(&name).cloned();
        Some(Parameter { name, form: (*typed.ty).clone(), shape })
    });
    let ReturnType::Type(_, answer) = &function.sig.output else { return None };
    Some(Method {
        name: name.expect("methods have a name"),
        aliases,
        about,
        parameters: parameters.collect(),
        answer: inner(answer).expect("an RpcResult").clone(),
        file: file.to_owned(),
    })
}

/// A variant that has something in it.
fn form(variant: &syn::Variant, attributes: &[Attribute]) -> Form {
    let words = serde_words(attributes);
    let is_untagged = words.iter().any(|(word, _)| word == "untagged");
    let rule = words.iter().find(|(word, _)| word == "rename_all_fields").and_then(|(_, rule)| rule.clone());
    let name = cased(&variant.ident.to_string(), &rename_rule(attributes));
    let name = renamed(&variant.attrs).unwrap_or(name);
    let kind = words.iter().find(|(word, _)| word == "tag").and_then(|(_, field)| field.clone());
    let part = |field: &syn::Field| {
        let name =
            field.ident.as_ref().map(|name| cased(&name.to_string(), rule.as_deref().unwrap_or_default()));
        (name, field.ty.clone())
    };
    Form {
        tag: (!is_untagged && kind.is_none()).then(|| name.clone()),
        kind: kind.map(|field| (field, name)),
        parts: variant.fields.iter().map(part).collect(),
    }
}

/// Takes the lines "`options`: [`agenda::Wanted`]" out of a description.
fn without_shapes(about: &str) -> (String, BTreeMap<String, String>) {
    let (mut lines, mut shapes) = (Vec::new(), BTreeMap::new());
    for line in about.lines() {
        match line.strip_prefix('`').and_then(|rest| rest.strip_suffix("`]")?.split_once("`: [`")) {
            Some((name, shape)) => drop(shapes.insert(name.to_owned(), shape.to_owned())),
            None => lines.push(line),
        }
    }
    (lines.join("\n").trim().to_owned(), shapes)
}

fn field(declared: &syn::Field, rule: &str) -> Option<Field> {
    let words = serde_words(&declared.attrs);
    if words.iter().any(|(word, _)| word == "skip") {
        return None;
    }
    let name = declared.ident.as_ref().expect("named fields").to_string();
    Some(Field {
        name: renamed(&declared.attrs).unwrap_or_else(|| cased(name.trim_start_matches("r#"), rule)),
        form: declared.ty.clone(),
        about: about(&declared.attrs),
        is_flat: words.iter().any(|(word, _)| word == "flatten"),
        is_left_out: words.iter().any(|(word, _)| word == "skip_serializing_if"),
    })
}

/// The comment above an item, a line for each of its own.
fn about(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(text(&pair.value).trim().to_owned()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn text(expression: &Expr) -> String {
    let Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) = expression else { panic!("not a text") };
    text.value()
}

fn is_marked(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|one| one.path().is_ident(name))
}

fn is_json(attributes: &[Attribute]) -> bool {
    let derives = attributes.iter().filter(|one| one.path().is_ident("derive"));
    let mut names =
        derives.filter_map(|one| one.meta.require_list().ok()).map(|list| list.tokens.to_string());
    names.any(|names| names.contains("Serialize") || names.contains("Deserialize"))
}

/// Words of serde's attributes, with their values.
fn serde_words(attributes: &[Attribute]) -> Vec<(String, Option<String>)> {
    let mut words = Vec::new();
    for attribute in attributes.iter().filter(|one| one.path().is_ident("serde")) {
        attribute
            .parse_nested_meta(|meta| {
                let value =
                    if meta.input.peek(syn::Token![=]) { Some(meta.value()?.parse::<Lit>()?) } else { None };
                let value =
                    value.and_then(|lit| if let Lit::Str(text) = lit { Some(text.value()) } else { None });
                words.push((meta.path.get_ident().map(ToString::to_string).unwrap_or_default(), value));
                Ok(())
            })
            .unwrap();
    }
    words
}

fn rename_rule(attributes: &[Attribute]) -> String {
    let rule = serde_words(attributes).into_iter().find(|(word, _)| word == "rename_all");
    rule.and_then(|(_, rule)| rule).unwrap_or_default()
}

fn renamed(attributes: &[Attribute]) -> Option<String> {
    serde_words(attributes).into_iter().find(|(word, _)| word == "rename").and_then(|(_, name)| name)
}

/// A name as serde writes it.
fn cased(name: &str, rule: &str) -> String {
    match rule {
        "camelCase" => {
            let mut words = name.split('_').filter(|word| !word.is_empty());
            let first = words.next().unwrap_or_default();
            let first = first[..1].to_lowercase() + &first[1..];
            words.fold(first, |done, word| done + &super::capitalized(word))
        }
        "lowercase" => name.to_lowercase(),
        "snake_case" | "" => name.to_owned(),
        other => panic!("serde's rule {other} has no meaning here yet"),
    }
}

/// What stands between the angle brackets of a type, where there is one thing.
pub(super) fn inner(form: &Type) -> Option<&Type> {
    let Type::Path(path) = form else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(form) => Some(form),
        _ => None,
    })
}
