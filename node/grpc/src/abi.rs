//! The part of the schedule service's interface that is called here.

alloy_sol_types::sol! {
    interface IScheduleService {
        struct Call { address from; address to; uint256 value; bytes data; }
        struct Body {
            Call[] calls; uint64 gasLimit; uint256 maxFeePerGas; string memo; uint32 nonce; uint64 executionTime;
            bool waitForExpiry;
        }
        struct SignatureEntry { bytes key; bytes signature; uint64 deadline; }
        struct Info {
            uint64 scheduleID; address creatorAccountID; address payerAccountID; bytes transactionBody; bytes[] signers;
            bytes adminKey; uint32 round; uint64 expiresAt; uint8 ended; uint64 endedAt;
        }
        error Refused(int64 responseCode);
        function createSchedule(bytes transactionBody, bytes adminKey, address payer, SignatureEntry[] sigMap)
            external payable returns (uint64 scheduleID);
        function signSchedule(uint64 scheduleID, SignatureEntry[] sigMap) external;
        function deleteSchedule(uint64 scheduleID, SignatureEntry[] sigMap) external;
        function getScheduleInfo(uint64 scheduleID) external view returns (int64 responseCode, Info info);
        function roundOf(bytes transactionBody, bytes adminKey, address payer) external view returns (uint32 round);
    }
}
