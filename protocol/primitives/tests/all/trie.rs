//! Proofs of receipts, checked the dull way: as any Ethereum client would, by the rules of the yellow paper's
//! appendix D, with nothing of ours and nothing of alloy-trie.

use alloy_primitives::{B256, Bytes, TxHash, keccak256};
use alloy_rlp::{Decodable as _, Header as Rlp, PayloadView};
use almanac_primitives::{Gas, GasPrice, Outcome, Receipt, ReceiptProof, block::receipts_root, receipt};

fn receipts(count: u8) -> Vec<Receipt> {
    let one = |n: u8| Receipt {
        transaction_type: 2,
        transaction_hash: TxHash::repeat_byte(n),
        outcome: if n.is_multiple_of(3) {
            Outcome::Halted(receipt::Halt::OutOfGas)
        } else {
            Outcome::Success
        },
        gas_used: Gas(n.into()),
        cumulative_gas_used: Gas(1),
        effective_gas_price: GasPrice(1),
        contract_address: None,
        failed_call: None,
        schedule_ref: None,
        logs: Vec::new(),
    };
    (0..count).map(one).collect()
}

/// What the trie under `root` has under the RLP of `index`, as these nodes say it.
fn look_up(root: B256, index: u64, nodes: &[Bytes]) -> Option<Vec<u8>> {
    let mut path: Vec<u8> = alloy_rlp::encode(index).iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let mut expected = root;
    for node in nodes {
        // Each node must be the one that the node above names.
        if keccak256(node) != expected {
            return None;
        }
        let PayloadView::List(items) = Rlp::decode_raw(&mut &node[..]).unwrap() else { panic!("no list") };
        let text = |mut item: &[u8]| Bytes::decode(&mut item).unwrap().to_vec();
        let next = match items.len() {
            17 if path.is_empty() => return Some(text(items[16])),
            17 => text(items[usize::from(path.remove(0))]),
            2 => {
                let (is_leaf, part) = compact(&text(items[0]));
                if !path.starts_with(&part) {
                    return None;
                }
                path.drain(..part.len());
                if is_leaf {
                    return path.is_empty().then(|| text(items[1]));
                }
                text(items[1])
            }
            other => panic!("{other} items"),
        };
        expected = B256::try_from(&next[..]).ok()?;
    }
    None
}

/// Whether it ends here, and the nibbles of a path in its compact form.
fn compact(bytes: &[u8]) -> (bool, Vec<u8>) {
    let nibbles: Vec<u8> = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let is_odd = nibbles[0] & 1 == 1;
    (nibbles[0] & 2 == 2, nibbles[if is_odd { 1 } else { 2 }..].to_vec())
}

#[test]
fn any_client_can_follow_the_nodes() {
    for count in [1, 2, 16, 17, 127, 128, 129, 200] {
        let receipts = receipts(count);
        let root = receipts_root(&receipts);
        for index in 0..count {
            let proof = ReceiptProof::new(&receipts, index.into(), Bytes::new()).unwrap();
            let found = look_up(root, index.into(), &proof.nodes);
            assert_eq!(found, Some(receipts[usize::from(index)].encode()), "{index} of {count}");
            let other = look_up(root, u64::from(index) + 1, &proof.nodes);
            assert_ne!(other, found, "the nodes lead to this one only");
        }
    }
}
