//! The chain as a Rust program sees it that knows nothing but alloy: fillers, contracts, filters, dev controls.

use crate::support::{ALICE_KEY, Node};
use alloy_consensus::transaction::SignerRecoverable as _;
use alloy_eips::{BlockId, BlockNumberOrTag, eip7702::Authorization};
use alloy_primitives::{Address, Bytes, U256, address, b256, hex};
use alloy_provider::{
    PendingTransactionConfig, Provider, ProviderBuilder,
    ext::{AnvilApi as _, TxPoolApi as _},
    network::{EthereumWallet, TransactionBuilder as _, TransactionBuilder7702 as _},
};
use alloy_rpc_types_eth::{
    Filter, TransactionRequest,
    simulate::{SimBlock, SimulatePayload},
    state::StateOverridesBuilder,
};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{SolCall as _, SolEvent as _, SolValue as _, sol};
use futures::StreamExt as _;
use std::time::Duration;

sol!(
    #[sol(rpc)]
    "../../contracts/examples/Counter.sol"
);

const ALICE: Address = address!("f39fd6e51aad88f6f4ce6ab8827279cfffb92266");
const BOB: Address = address!("70997970c51812dc3a010c7d01b50e0d17dc79c8");
const BOB_KEY: &str = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const COIN: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);

/// A provider that fills and signs what alice sends, on a chain of its own.
fn alice(node: &Node) -> impl Provider + Clone + use<> {
    let wallet = EthereumWallet::from(signer(ALICE_KEY));
    let provider = ProviderBuilder::new()
        .wallet(wallet)
        .connect_http(format!("http://{}", node.address).parse().unwrap());
    provider.client().set_poll_interval(Duration::from_millis(20));
    provider
}

fn signer(key: &str) -> PrivateKeySigner {
    key.parse().unwrap()
}

async fn deploy<P: Provider + Clone>(provider: &P, limit: u64) -> Counter::CounterInstance<P> {
    let file: serde_json::Value =
        serde_json::from_str(include_str!("../../../../contracts/artifacts/Counter.json")).unwrap();
    let mut code = hex::decode(file["bytecode"].as_str().unwrap()).unwrap();
    code.extend(U256::from(limit).abi_encode());
    let request = TransactionRequest::default().with_deploy_code(Bytes::from(code));
    let receipt = provider.send_transaction(request).await.unwrap().get_receipt().await.unwrap();
    Counter::new(receipt.contract_address.unwrap(), provider.clone())
}

#[tokio::test]
async fn a_transfer_is_filled_signed_sent_and_found_again() {
    let node = Node::start(&[]);
    let provider = alice(&node);
    assert_eq!(provider.get_chain_id().await.unwrap(), 31337);
    assert_eq!(provider.get_accounts().await.unwrap()[..2], [ALICE, BOB]);

    let request = TransactionRequest::default().with_to(BOB).with_value(COIN);
    let receipt = provider.send_transaction(request).await.unwrap().get_receipt().await.unwrap();
    assert!(receipt.status());
    assert_eq!((receipt.gas_used, receipt.block_number, receipt.from), (21_000, Some(1), ALICE));
    assert_eq!(provider.get_balance(BOB).await.unwrap(), U256::from(10_001) * COIN);
    assert_eq!(
        provider.get_balance(BOB).block_id(BlockId::earliest()).await.unwrap(),
        U256::from(10_000) * COIN
    );
    let paid = U256::from(receipt.gas_used) * U256::from(receipt.effective_gas_price);
    assert_eq!(provider.get_balance(ALICE).await.unwrap(), U256::from(9_999) * COIN - paid);

    let found = provider.get_transaction_by_hash(receipt.transaction_hash).await.unwrap().unwrap();
    // The signature that comes back is the one that was made.
    assert_eq!(found.inner.recover_signer().unwrap(), ALICE);
    assert_eq!((found.block_hash, found.transaction_index), (receipt.block_hash, Some(0)));

    let block = provider.get_block_by_number(BlockNumberOrTag::Latest).full().await.unwrap().unwrap();
    assert_eq!(block.header.hash, receipt.block_hash.unwrap());
    assert_eq!(block.transactions.as_transactions().unwrap(), [found]);
    let receipts = provider.get_block_receipts(BlockId::latest()).await.unwrap().unwrap();
    assert_eq!(receipts, [receipt]);
    assert_eq!(provider.get_block_by_number(9.into()).await.unwrap(), None);
}

#[tokio::test]
async fn a_contract_is_deployed_called_and_its_errors_and_events_decode() {
    let node = Node::start(&[]);
    let provider = alice(&node);
    let counter = deploy(&provider, 100).await;
    assert_eq!(counter.limit().call().await.unwrap(), U256::from(100));
    assert_eq!(counter.owner().call().await.unwrap(), ALICE);

    let receipt = counter.increase(U256::from(7)).send().await.unwrap().get_receipt().await.unwrap();
    let event = receipt.decoded_log::<Counter::Increased>().unwrap();
    assert_eq!((event.by, event.step, event.value), (ALICE, U256::from(7), U256::from(7)));
    let earlier = BlockId::number(receipt.block_number.unwrap() - 1);
    assert_eq!(counter.value().block(earlier).call().await.unwrap(), U256::ZERO);

    let error = counter.increase(U256::from(94)).call().await.unwrap_err();
    let error = error.as_decoded_error::<Counter::AboveLimit>().unwrap();
    assert_eq!((error.wanted, error.limit), (U256::from(101), U256::from(100)));
    let error = counter.set(U256::from(1)).from(BOB).estimate_gas().await.unwrap_err();
    assert_eq!(error.as_decoded_error::<Counter::NotOwner>().unwrap().caller, BOB);

    let overridden = StateOverridesBuilder::default()
        .with_state_diff(*counter.address(), [(U256::ZERO.into(), U256::from(60).into())])
        .build();
    assert_eq!(counter.increase(U256::from(1)).state(overridden).call().await.unwrap(), U256::from(61));
    let listed = provider
        .create_access_list(&counter.increase(U256::from(1)).from(ALICE).into_transaction_request())
        .await;
    assert!(listed.unwrap().access_list.0.iter().any(|item| item.address == *counter.address()));
}

#[tokio::test]
async fn logs_and_filters_bring_every_event_once() {
    let node = Node::start(&[]);
    let provider = alice(&node);
    let counter = deploy(&provider, 100).await;
    let filter =
        Filter::new().address(*counter.address()).event_signature(Counter::Increased::SIGNATURE_HASH);
    let mut watched = provider.watch_logs(&filter).await.unwrap().into_stream();
    let mut blocks = provider.watch_blocks().await.unwrap().into_stream();

    let mut hashes = Vec::new();
    for step in 1..=3 {
        let sent = counter.increase(U256::from(step)).send().await.unwrap();
        hashes.push(sent.get_receipt().await.unwrap().block_hash.unwrap());
    }
    let (mut heard, mut heard_blocks) = (Vec::new(), Vec::new());
    let listen = async {
        while heard.len() < 3 {
            heard.extend(watched.next().await.unwrap());
        }
        while heard_blocks.len() < 3 {
            heard_blocks.extend(blocks.next().await.unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(10), listen).await.unwrap();
    let steps: Vec<_> =
        heard.iter().map(|log| log.log_decode::<Counter::Increased>().unwrap().inner.step).collect();
    assert_eq!(steps, [1, 2, 3].map(U256::from));
    assert_eq!(heard_blocks, hashes);

    let stored = provider.get_logs(&filter.clone().from_block(0)).await.unwrap();
    assert_eq!(stored, heard);
    let second = filter.from_block(0).topic2(U256::from(2));
    assert_eq!(provider.get_logs(&second).await.unwrap(), stored[1..2]);
}

#[tokio::test]
async fn an_account_takes_on_code_by_eip_7702() {
    let node = Node::start(&[]);
    let provider = alice(&node);
    let counter = deploy(&provider, 100).await;
    let authorization = Authorization { chain_id: U256::from(31337), address: *counter.address(), nonce: 0 };
    let signature = signer(BOB_KEY).sign_hash_sync(&authorization.signature_hash()).unwrap();
    let request = TransactionRequest::default()
        .with_to(BOB)
        .with_authorization_list(vec![authorization.into_signed(signature)])
        .with_input(Counter::increaseCall { step: U256::from(1) }.abi_encode())
        .with_gas_limit(200_000);
    let receipt = provider.send_transaction(request).await.unwrap().get_receipt().await.unwrap();
    assert_eq!(receipt.transaction_type(), alloy_consensus::TxType::Eip7702);
    let code = provider.get_code_at(BOB).await.unwrap();
    assert_eq!(code[..3], hex!("ef0100"));
    assert_eq!(code[3..], counter.address()[..]);
}

#[tokio::test]
async fn developer_controls_answer_in_the_types_of_alloy() {
    let node = Node::start(&[]);
    let provider = alice(&node);
    let stranger = address!("00000000000000000000000000000000000000cc");

    let metadata = provider.anvil_metadata().await.unwrap();
    assert_eq!((metadata.chain_id, metadata.latest_block_number), (31337, 0));
    assert_eq!(provider.anvil_node_info().await.unwrap().current_block_number, 0);

    let snapshot = provider.anvil_snapshot().await.unwrap();
    provider.anvil_set_balance(stranger, COIN).await.unwrap();
    provider.anvil_impersonate_account(stranger).await.unwrap();
    let request = TransactionRequest::default()
        .with_from(stranger)
        .with_to(BOB)
        .with_value(U256::from(5))
        .with_gas_limit(21_000)
        .with_gas_price(10_000_000_000);
    let hash = provider.anvil_send_impersonated_transaction(request).await.unwrap();
    let receipt = provider.watch_pending_transaction(PendingTransactionConfig::new(hash)).await.unwrap();
    receipt.await.unwrap();
    assert_eq!(provider.get_balance(BOB).await.unwrap(), U256::from(10_000) * COIN + U256::from(5));

    let before = provider.get_block_by_number(BlockNumberOrTag::Latest).await.unwrap().unwrap().header;
    provider.anvil_increase_time(3_600).await.unwrap();
    provider.anvil_mine(Some(2), None).await.unwrap();
    let after = provider.get_block_by_number(BlockNumberOrTag::Latest).await.unwrap().unwrap().header;
    assert_eq!(after.number, before.number + 2);
    assert!((3_600..3_660).contains(&(after.timestamp - before.timestamp)), "{after:?}");

    assert!(provider.anvil_revert(snapshot).await.unwrap());
    assert_eq!(provider.get_balance(stranger).await.unwrap(), U256::ZERO);
    assert_eq!(provider.get_block_number().await.unwrap(), 0);
    assert!(!provider.anvil_revert(snapshot).await.unwrap());

    assert!(provider.anvil_get_auto_mine().await.unwrap());
    provider.anvil_set_auto_mine(false).await.unwrap();
    let request = TransactionRequest::default().with_to(BOB).with_value(U256::from(1));
    let pending = provider.send_transaction(request).await.unwrap();
    assert_eq!(provider.txpool_status().await.unwrap().pending, 1);
    assert_eq!(provider.get_block_number().await.unwrap(), 0);
    provider.evm_mine(None).await.unwrap();
    assert!(pending.get_receipt().await.unwrap().status());
}

#[tokio::test]
async fn calls_are_simulated_on_top_of_each_other() {
    let node = Node::start(&[]);
    let provider = alice(&node);
    let counter = deploy(&provider, 100).await;
    let call = |step: u64| counter.increase(U256::from(step)).from(ALICE).into_transaction_request();
    let block = SimBlock::default().call(call(1)).call(call(2)).call(call(500));
    let simulated = provider.simulate(&SimulatePayload::default().extend(block)).await.unwrap();
    let calls = &simulated[0].calls;
    assert_eq!(calls.iter().map(|call| call.status).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(calls[1].return_data, U256::from(3).abi_encode());
    assert_eq!(calls[1].logs.len(), 1);
    assert_eq!(counter.value().call().await.unwrap(), U256::ZERO);
}

#[tokio::test]
async fn refusals_carry_the_code_and_the_words() {
    let node = Node::start(&[]);
    let provider = alice(&node);
    let rich = TransactionRequest::default().with_to(BOB).with_value(U256::from(20_000) * COIN);
    let error = provider.send_transaction(rich).await.unwrap_err();
    assert!(error.to_string().to_lowercase().contains("insufficient funds"), "{error}");
    let error = provider.raw_request::<_, U256>("eth_noSuchMethod".into(), ()).await.unwrap_err();
    assert_eq!(error.as_error_resp().unwrap().code, -32601);
    let nothing = b256!("0000000000000000000000000000000000000000000000000000000000000001");
    assert_eq!(provider.get_transaction_receipt(nothing).await.unwrap(), None);
}
