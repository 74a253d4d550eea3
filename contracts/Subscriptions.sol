// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {ICronRegistry} from "./ICronRegistry.sol";
import {IERC20} from "./IERC20.sol";
import {ISubscriptions} from "./ISubscriptions.sol";

/// Token subscriptions on the chain's cron registry: docs/subscriptions.md. It has no owner and holds no money:
/// tokens go from customer to merchant, and the value that pays for gas is escrow of the registry.
///
/// Time is cut into periods of one interval, counted from the approval. Each period is charged at most once,
/// whoever makes the registry call; a period that passed without a try is never made up for.
contract Subscriptions is ISubscriptions {
    enum State {
        None,
        Active,
        Cancelled,
        /// All maxCharges were made.
        Completed
    }

    /// Why the last period was not paid.
    enum Failure {
        None,
        AllowanceTooLow,
        BalanceTooLow,
        TokenReturnedFalse,
        TokenReverted,
        TokenWithoutCode,
        /// The cron job could not pay for its gas and ended.
        EscrowRanOut
    }

    /// A subscription with all that a wallet shows.
    struct Subscription {
        address customer;
        address merchant;
        address token;
        uint256 amount;
        uint256 intervalSec;
        uint256 maxCharges;
        uint256 chargesMade;
        /// The largest uint256 if there is no limit; 0 once it has ended.
        uint256 chargesLeft;
        /// From when on it can be charged again; 0 once it has ended.
        uint256 nextChargeAt;
        /// Until when the last charge paid; 0 if the last one failed or there was none.
        uint256 paidUntil;
        State state;
        /// Why the last try failed; empty if it did not.
        string failure;
        uint256 jobId;
        /// Whether the cron job exists; without it no charge comes until `fund` makes a new one.
        bool isScheduled;
        /// What the cron job has left for gas.
        uint256 escrow;
    }

    /// As it is stored: what a charge writes is one slot.
    struct Record {
        address customer;
        uint40 nextChargeAt;
        uint40 chargesMade;
        State state;
        Failure failure;
        address merchant;
        uint32 intervalSec;
        address token;
        uint256 amount;
        uint256 maxCharges;
        uint256 jobId;
    }

    error TokenHasNoCode(address token);
    /// The zero address, or this contract, where tokens would be stuck.
    error InvalidMerchant(address merchant);
    error AmountIsZero();
    error IntervalTooShort(uint256 given, uint256 min);
    error IntervalTooLong(uint256 given, uint256 max);
    error UnknownSubscription(uint256 id, uint256 last);
    error NotCustomer(uint256 id, address caller, address customer);
    error NotRegistry(address caller, address registry);
    error NotSelf(address caller);
    /// The subscription was cancelled or has made all its charges.
    error SubscriptionEnded(uint256 id, State state);
    /// Only what has ended can be reclaimed: cancel first.
    error SubscriptionActive(uint256 id);
    /// A run with so little gas would look like a token that fails.
    error GasTooLow(uint256 given, uint256 needed);
    /// Undoes a transfer that the token does not vouch for; never leaves this contract.
    error NotCollected(Failure failure);

    ICronRegistry private constant CRON = ICronRegistry(0x0000000000000000000000000000000000000006);

    /// What the registry demands; 0 would be a single run.
    uint256 public constant INTERVAL_SEC_MIN = 60;
    /// What the record can hold; the registry's own limit is lower.
    uint256 public constant INTERVAL_SEC_MAX = type(uint32).max;

    /// Of each run. Unused gas is refunded up to half, so that a charge costs at least half of this.
    uint256 public constant CHARGE_GAS = 300_000;
    /// What a token may use. OpenZeppelin's needs at most 60,000; the rest is for proxies and hooks.
    uint256 public constant TOKEN_GAS = 150_000;
    /// For each question why a transfer failed.
    uint256 private constant READ_GAS = 30_000;
    /// What a run has used before its first check: 21,000, 36 bytes of input, and finding the function.
    uint256 private constant BEFORE_GAS = 25_000;

    /// The registry refunds unused gas into the escrow, up to half, and after a halt runs once, for the latest due
    /// time.
    /// Not `all`: the customer would pay for gas of runs that find their period charged already.
    /// Not `skip`: the merchant would lose a period although the chain is there to charge it.
    uint256 private constant OPTIONS = 1 | (1 << 8);

    /// How many subscriptions there are; ids count from 1.
    uint256 public count;
    mapping(uint256 => Record) private records;
    mapping(address => uint256[]) private customerIds;
    mapping(address => uint256[]) private merchantIds;

    /// @inheritdoc ISubscriptions
    function approveSubscription(
        address token,
        address merchant,
        uint256 amount,
        uint256 intervalSec,
        uint256 maxCharges
    ) external payable returns (uint256 id) {
        if (token.code.length == 0) revert TokenHasNoCode(token);
        if (merchant == address(0) || merchant == address(this)) revert InvalidMerchant(merchant);
        if (amount == 0) revert AmountIsZero();
        if (intervalSec < INTERVAL_SEC_MIN) revert IntervalTooShort(intervalSec, INTERVAL_SEC_MIN);
        if (intervalSec > INTERVAL_SEC_MAX) revert IntervalTooLong(intervalSec, INTERVAL_SEC_MAX);

        id = ++count;
        Record storage record = records[id];
        record.customer = msg.sender;
        record.merchant = merchant;
        record.token = token;
        record.amount = amount;
        record.intervalSec = uint32(intervalSec);
        record.maxCharges = maxCharges;
        record.nextChargeAt = uint40(block.timestamp + intervalSec);
        record.state = State.Active;
        customerIds[msg.sender].push(id);
        merchantIds[merchant].push(id);
        record.jobId = _schedule(id, record);
        emit SubscriptionApproved(id, msg.sender, merchant);
    }

    /// @inheritdoc ISubscriptions
    function chargeSubscription(uint256 id) external returns (bool) {
        if (msg.sender != address(CRON)) revert NotRegistry(msg.sender, address(CRON));
        // Anyone may have scheduled this call. With less gas than the subscription's own job gives, the token
        // would run dry and the period would count as failed.
        if (gasleft() < CHARGE_GAS - BEFORE_GAS) revert GasTooLow(gasleft(), CHARGE_GAS - BEFORE_GAS);
        Record storage record = _existing(id);
        if (record.state != State.Active || block.timestamp < record.nextChargeAt) return false;

        // The period is over for everyone before the token gets to run.
        record.nextChargeAt = _nextPeriod(record);
        try this.collect(id) {
            emit SubscriptionCharged(id, record.amount, _chargesLeft(record));
        } catch (bytes memory reason) {
            record.failure = _diagnose(record, reason);
            emit SubscriptionFailed(id, _text(record.failure));
            return false;
        }
        if (record.state == State.Completed) {
            // The money has moved; a job that is gone already must not undo that.
            try CRON.cancel(record.jobId) {} catch {}
        }
        return true;
    }

    /// Counts one charge and moves its money, both or neither. For this contract only: as a call of its own it
    /// also undoes what a token did that answered false.
    function collect(uint256 id) external {
        if (msg.sender != address(this)) revert NotSelf(msg.sender);
        Record storage record = records[id];
        record.chargesMade += 1;
        record.failure = Failure.None;
        if (record.chargesMade == record.maxCharges) record.state = State.Completed;

        if (record.token.code.length == 0) revert NotCollected(Failure.TokenWithoutCode);
        bytes memory input =
            abi.encodeCall(IERC20.transferFrom, (record.customer, record.merchant, record.amount));
        (bool success, uint256 size, uint256 word) = _call(record.token, input);
        if (!success) revert NotCollected(Failure.TokenReverted);
        // Some old tokens answer nothing at all. An answer shorter than a word is never 1.
        if (size != 0 && word != 1) revert NotCollected(Failure.TokenReturnedFalse);
    }

    /// @inheritdoc ISubscriptions
    function cancelSubscription(uint256 id) external returns (bool) {
        Record storage record = _ofCaller(id);
        if (record.state != State.Active) revert SubscriptionEnded(id, record.state);
        record.state = State.Cancelled;
        emit SubscriptionCancelled(id);
        return true;
    }

    /// @inheritdoc ISubscriptions
    /// @dev False if the job is gone already: its escrow has run out, and the rest was refunded then.
    function reclaim(uint256 id) external returns (bool) {
        Record storage record = _ofCaller(id);
        if (record.state == State.Active) revert SubscriptionActive(id);
        (bool isScheduled, ) = _job(record);
        return isScheduled && CRON.cancel(record.jobId);
    }

    /// Adds the value to what pays for the gas. Anyone may. Where the escrow had run out, charges go on with
    /// the next period.
    function fund(uint256 id) external payable {
        Record storage record = _existing(id);
        if (record.state != State.Active) revert SubscriptionEnded(id, record.state);
        (bool isScheduled, ) = _job(record);
        if (isScheduled) {
            CRON.topUp{value: msg.value}(record.jobId);
            return;
        }
        if (record.nextChargeAt <= block.timestamp) {
            record.nextChargeAt = _nextPeriod(record);
            record.failure = Failure.EscrowRanOut;
        }
        record.jobId = _schedule(id, record);
    }

    function getSubscription(uint256 id) external view returns (Subscription memory) {
        Record storage record = _existing(id);
        (bool isScheduled, uint256 escrow) = _job(record);
        bool isActive = record.state == State.Active;
        return Subscription({
            customer: record.customer,
            merchant: record.merchant,
            token: record.token,
            amount: record.amount,
            intervalSec: record.intervalSec,
            maxCharges: record.maxCharges,
            chargesMade: record.chargesMade,
            chargesLeft: isActive ? _chargesLeft(record) : 0,
            nextChargeAt: isActive ? record.nextChargeAt : 0,
            paidUntil: paidUntil(id),
            state: record.state,
            failure: _text(record.failure),
            jobId: record.jobId,
            isScheduled: isScheduled,
            escrow: escrow
        });
    }

    /// Until when the last charge paid; 0 if the last try failed or there was none. Cancelling leaves it.
    function paidUntil(uint256 id) public view returns (uint256) {
        Record storage record = _existing(id);
        return record.chargesMade == 0 || record.failure != Failure.None ? 0 : record.nextChargeAt;
    }

    /// How many subscriptions an account has approved.
    function countOfCustomer(address customer) external view returns (uint256) {
        return customerIds[customer].length;
    }

    /// How many subscriptions an account is paid by.
    function countOfMerchant(address merchant) external view returns (uint256) {
        return merchantIds[merchant].length;
    }

    /// Ids of a customer's subscriptions, oldest first: at most `size`, from index `start` on.
    function idsOfCustomer(address customer, uint256 start, uint256 size)
        external
        view
        returns (uint256[] memory)
    {
        return _page(customerIds[customer], start, size);
    }

    /// Ids of a merchant's subscriptions, oldest first: at most `size`, from index `start` on.
    function idsOfMerchant(address merchant, uint256 start, uint256 size)
        external
        view
        returns (uint256[] memory)
    {
        return _page(merchantIds[merchant], start, size);
    }

    /// A job that charges every period from the next one on. It has no last run, since a failed charge does not
    /// count; it ends by `reclaim`, with the last charge, or when the escrow is used up.
    function _schedule(uint256 id, Record storage record) private returns (uint256 jobId) {
        return CRON.scheduleWith{value: msg.value}(
            address(this),
            abi.encodeCall(ISubscriptions.chargeSubscription, (id)),
            record.nextChargeAt,
            record.intervalSec,
            0,
            CHARGE_GAS,
            record.customer,
            OPTIONS
        );
    }

    function _existing(uint256 id) private view returns (Record storage record) {
        record = records[id];
        if (record.state == State.None) revert UnknownSubscription(id, count);
    }

    function _ofCaller(uint256 id) private view returns (Record storage record) {
        record = _existing(id);
        if (msg.sender != record.customer) revert NotCustomer(id, msg.sender, record.customer);
    }

    /// Whether the cron job still exists, and its money.
    function _job(Record storage record) private view returns (bool isScheduled, uint256 escrow) {
        ICronRegistry.Job memory job = CRON.getJob(record.jobId);
        return (job.owner == address(this), job.gasEscrow);
    }

    /// When the first period begins that has not begun: always a whole number of intervals after the approval.
    function _nextPeriod(Record storage record) private view returns (uint40) {
        uint256 next = record.nextChargeAt;
        uint256 begun = (block.timestamp - next) / record.intervalSec + 1;
        return uint40(next + begun * record.intervalSec);
    }

    function _chargesLeft(Record storage record) private view returns (uint256) {
        return record.maxCharges == 0 ? type(uint256).max : record.maxCharges - record.chargesMade;
    }

    /// Why a charge failed. What the customer can mend comes first, where the token tells.
    function _diagnose(Record storage record, bytes memory reason) private view returns (Failure failure) {
        failure = _failureIn(reason);
        if (failure == Failure.TokenWithoutCode) return failure;
        address token = record.token;
        bytes memory input = abi.encodeCall(IERC20.allowance, (record.customer, address(this)));
        if (_read(token, input) < record.amount) return Failure.AllowanceTooLow;
        input = abi.encodeCall(IERC20.balanceOf, (record.customer));
        if (_read(token, input) < record.amount) return Failure.BalanceTooLow;
    }

    /// The argument of NotCollected, the one error that `collect` ends with.
    function _failureIn(bytes memory reason) private pure returns (Failure) {
        uint256 argument;
        assembly ("memory-safe") {
            argument := mload(add(reason, 36))
        }
        return Failure(argument);
    }

    /// Calls the token, and takes no more than a word of what it answers: copying all of it would cost this
    /// contract as much gas as the token likes.
    function _call(address token, bytes memory input)
        private
        returns (bool success, uint256 size, uint256 word)
    {
        uint256 gasMax = TOKEN_GAS;
        assembly ("memory-safe") {
            mstore(0, 0)
            success := call(gasMax, token, 0, add(input, 32), mload(input), 0, 32)
            size := returndatasize()
            word := mload(0)
        }
    }

    /// The number that a view of the token answers, or the largest if it answers none.
    function _read(address token, bytes memory input) private view returns (uint256 word) {
        uint256 gasMax = READ_GAS;
        assembly ("memory-safe") {
            let success := staticcall(gasMax, token, add(input, 32), mload(input), 0, 32)
            word := not(0)
            if and(success, gt(returndatasize(), 31)) { word := mload(0) }
        }
    }

    function _page(uint256[] storage ids, uint256 start, uint256 size)
        private
        view
        returns (uint256[] memory page)
    {
        uint256 rest = start < ids.length ? ids.length - start : 0;
        page = new uint256[](size < rest ? size : rest);
        for (uint256 i = 0; i < page.length; i++) page[i] = ids[start + i];
    }

    function _text(Failure failure) private pure returns (string memory) {
        if (failure == Failure.AllowanceTooLow) return "allowance too low";
        if (failure == Failure.BalanceTooLow) return "balance too low";
        if (failure == Failure.TokenReturnedFalse) return "transferFrom returned false";
        if (failure == Failure.TokenReverted) return "transferFrom reverted";
        if (failure == Failure.TokenWithoutCode) return "token has no code";
        if (failure == Failure.EscrowRanOut) return "cron escrow ran out";
        return "";
    }
}
