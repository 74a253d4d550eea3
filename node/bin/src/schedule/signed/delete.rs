//! Deletes a transaction that waits, for its admin key: `almanac schedule cancel`.

use super::{
    IScheduleService, gathering::Gathering, given::read_answers, key_words::leaf_words, request::Request,
    sign::entry, to_service, wording,
};
use crate::{
    client::{
        output::{Colour, Facts},
        sending::SendingArgs,
        words::date,
    },
    schedule::calls,
};
use alloy_primitives::U256;
use alloy_sol_types::SolCall as _;
use almanac_primitives::{
    ScheduleId,
    keys::{KeyTree, Leaf},
};
use anyhow::{Context as _, ensure};
use serde_json::json;

/// Deletes it, with the signatures that others gave, or prints the line that asks for them.
pub(in crate::schedule) fn run(
    sending: &SendingArgs,
    id: ScheduleId,
    with: &[String],
    is_request: bool,
) -> anyhow::Result<()> {
    let node = &sending.node;
    let gathering = Gathering::read_pending(node, id)?;
    ensure!(
        !gathering.terms.admin_key.is_empty(),
        "NoAdminKey: {id} was made without --admin, so nobody can delete it; it expires at {}",
        date(wording::second(gathering.expires))
    );
    let admin = KeyTree::decode(&gathering.terms.admin_key).context("the node answers no admin key")?;
    let request = Request::to_delete(node.chain()?, &gathering);
    if is_request {
        let line = request.line();
        return sending
            .output
            .print(|| json!({ "id": id.to_string(), "request": line }), || format!("{line}\n"));
    }
    let key = sending.key.required()?;
    let mut answers = read_answers(&request, with)?;
    // A caller counts as the secp256k1 key of its address; another key has to sign.
    if matches!(key.leaf(), Leaf::Ed25519(leaf) if admin.leaves().any(|known| known == Leaf::Ed25519(leaf))) {
        answers.push(request.sign(&key));
    }
    let mut proven = vec![Leaf::Secp256k1(key.leaf().account())];
    for answer in &answers {
        let leaf = request.check(answer)?;
        ensure!(
            admin.leaves().any(|known| known == leaf),
            "NotAsked: the signature of {} does not help to delete {id}: leave it out",
            leaf_words(leaf)
        );
        proven.push(leaf);
    }
    ensure!(
        admin.is_satisfied(|leaf| proven.contains(&leaf)),
        "NotAdmin: {id} is deleted by {}: ask the others with `almanac schedule cancel {id} --request`, and pass what \
         they answer with --with",
        wording::admin_words(&gathering.terms)
    );
    let mut told = json!({ "id": id.to_string() });
    let read_back = || {
        let mut facts = Facts::default();
        facts.add("deletes", id.to_string());
        wording::add_terms(&mut facts, &gathering.terms, Some(gathering.creator));
        facts.text()
    };
    if !sending.agree("Delete it?", read_back, &told)? {
        return Ok(());
    }
    let entries = answers.into_iter().map(entry).collect();
    let call = IScheduleService::deleteScheduleCall { scheduleID: id.0, sigMap: entries };
    let receipt = sending.submit(&key, vec![to_service(U256::ZERO, call.abi_encode())])?;
    told["transactionHash"] = json!(calls::hash(&receipt));
    sending.output.print(
        || told,
        || format!("{} {id}: the signatures that it had are void\n", Colour::Yellow.paint("deleted")),
    )
}
