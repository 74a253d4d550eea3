// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// What the ledger at 0x000000000000000000000000000000000000a1ff says: refunds that no event of a door names, and faults
/// of the chain's own. It answers no call.
interface ILedger {
    /// The end of a job returned this many wei of its escrow. A cancelled job has JobCancelled instead.
    event ScheduleRefunded(uint256 indexed id, uint256 amount);
    /// A schedule was put aside. Nothing runs it any more; its owner may cancel it and gets the escrow.
    event ScheduleQuarantined(uint256 indexed id, string reason);
    /// A lane cannot be read and is paused, until governance lets it go on.
    event LanePaused(uint8 indexed lane, string reason);
    /// What became of schedules in this block contradicted the calendar, which follows them as far as it can.
    event CalendarContradicted(string reason);
}
