//! gRPC's page, from the proto files with their comments.

use super::ROOT;
use protox::prost_reflect::{
    DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, ServiceDescriptor,
    prost_types::FileDescriptorProto,
};
use std::{fmt::Write as _, path::Path};

const HEAD: &str = "# gRPC reference

Every service, message and enum of `node/grpc/proto/almanac.proto`. [gRPC](grpc.md) says how to use them. Written from that file by `node/bin/tests/chain/reference`, which CI compares. Health checks and reflection are those that every gRPC server has.
";

pub(super) fn page() -> String {
    let directory = Path::new(ROOT).join("node/grpc/proto");
    let compiled = protox::compile(["almanac.proto"], [directory]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(compiled).unwrap();
    let file = pool.get_file_by_name("almanac.proto").unwrap();
    let comments = file.file_descriptor_proto();
    let mut out = HEAD.to_owned();
    file.services().for_each(|service| write_service(&mut out, &service, comments));
    out.push_str("\n## Messages\n");
    file.messages().for_each(|message| write_message(&mut out, &message, comments));
    out.push_str("\n## Enums\n");
    file.enums().for_each(|numbers| write_enum(&mut out, &numbers, comments));
    out
}

/// The comment before a declaration, as one line.
fn about(file: &FileDescriptorProto, path: &[i32]) -> String {
    let locations = &file.source_code_info.as_ref().expect("compiled with comments").location;
    let found = locations.iter().find(|location| location.path == path);
    let text = found.and_then(|location| location.leading_comments.clone()).unwrap_or_default();
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// A comment behind something, if there is one.
fn after(mark: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{mark}{text}") }
}

fn write_service(out: &mut String, service: &ServiceDescriptor, file: &FileDescriptorProto) {
    write!(out, "\n## {}\n\n{}\n\n", service.name(), about(file, service.path())).unwrap();
    for method in service.methods() {
        let (input, output) = (method.input(), method.output());
        writeln!(
            out,
            "- `{}` takes [{}](#{}), answers [{}](#{}). {}",
            method.name(),
            input.name(),
            input.name().to_lowercase(),
            output.name(),
            output.name().to_lowercase(),
            about(file, method.path())
        )
        .unwrap();
    }
}

fn write_message(out: &mut String, message: &MessageDescriptor, file: &FileDescriptorProto) {
    write!(out, "\n### {}\n\n", message.name()).unwrap();
    let text = about(file, message.path());
    if !text.is_empty() {
        writeln!(out, "{text}\n").unwrap();
    }
    for field in message.fields() {
        let one =
            field.containing_oneof().map(|group| format!(", one of `{}`", group.name())).unwrap_or_default();
        let text = after(". ", &about(file, field.path()));
        writeln!(out, "- {} `{}`: {}{one}{text}", field.number(), field.name(), form(&field)).unwrap();
    }
}

fn form(field: &FieldDescriptor) -> String {
    let one = match field.kind() {
        Kind::Message(message) => format!("[{}](#{})", message.name(), message.name().to_lowercase()),
        Kind::Enum(numbers) => format!("[{}](#{})", numbers.name(), numbers.name().to_lowercase()),
        plain => format!("{plain:?}").to_lowercase(),
    };
    if field.is_list() { format!("list of {one}") } else { one }
}

fn write_enum(out: &mut String, numbers: &EnumDescriptor, file: &FileDescriptorProto) {
    write!(out, "\n### {}\n\n", numbers.name()).unwrap();
    let text = about(file, numbers.path());
    if !text.is_empty() {
        writeln!(out, "{text}\n").unwrap();
    }
    for value in numbers.values() {
        let text = after(": ", &about(file, value.path()));
        writeln!(out, "- {} `{}`{text}", value.number(), value.name()).unwrap();
    }
}
