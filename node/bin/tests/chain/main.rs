//! Tests with one developer chain at a time, beside those of documents. Networks are tested in `../networks`.

mod alloy_client;
mod almanac;
mod cli;
mod clock;
mod controls;
mod dev;
mod doors_page;
mod eth;
mod explorer;
mod files;
mod flags;
mod fork;
mod fuzz;
mod grpc;
mod index;
mod kill;
mod limits;
mod native;
mod packaging;
mod record;
mod record_signed;
mod reference;
mod rest;
mod send;
mod settings;
mod strict;
#[path = "../support/mod.rs"]
mod support;
mod tidy;
mod trace;
mod words;
