// Written by clients/ts/abis.mjs from contracts/artifacts. Do not edit.

/** ABI of contracts/ICronRegistry.sol. */
export const cronAbi = [
 {
  "inputs": [],
  "name": "CronDisabled",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "CronPaused",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "needed",
    "type": "uint256"
   }
  ],
  "name": "EscrowTooLow",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "min",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "GasLimitOutOfBounds",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "InputTooLong",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "min",
    "type": "uint256"
   }
  ],
  "name": "InputTooShort",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "IntervalTooLong",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "min",
    "type": "uint256"
   }
  ],
  "name": "IntervalTooShort",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "name": "JobInLastRun",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "string",
    "name": "reason",
    "type": "string"
   }
  ],
  "name": "JobUnreadable",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "MethodIsEmpty",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "string",
    "name": "probable",
    "type": "string"
   }
  ],
  "name": "MethodNotCanonical",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   },
   {
    "internalType": "address",
    "name": "owner",
    "type": "address"
   }
  ],
  "name": "NotJobOwner",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "RefundToIsZero",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "RunsTooMany",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "TargetIsZero",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "TimeBeyondHorizon",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "blockTime",
    "type": "uint256"
   }
  ],
  "name": "TimeNotInFuture",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "UnknownCatchUp",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "name": "UnknownJob",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "known",
    "type": "uint256"
   }
  ],
  "name": "UnknownOptions",
  "type": "error"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "owner",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "refunded",
    "type": "uint256"
   }
  ],
  "name": "JobCancelled",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": false,
    "internalType": "bool",
    "name": "success",
    "type": "bool"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "gasUsed",
    "type": "uint256"
   }
  ],
  "name": "JobExecuted",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": false,
    "internalType": "string",
    "name": "reason",
    "type": "string"
   }
  ],
  "name": "JobExhausted",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "owner",
    "type": "address"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "target",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "nextRunAt",
    "type": "uint256"
   }
  ],
  "name": "JobScheduled",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "amount",
    "type": "uint256"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "totalEscrow",
    "type": "uint256"
   }
  ],
  "name": "JobToppedUp",
  "type": "event"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "name": "cancel",
  "outputs": [
   {
    "internalType": "bool",
    "name": "",
    "type": "bool"
   }
  ],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "name": "getJob",
  "outputs": [
   {
    "components": [
     {
      "internalType": "uint256",
      "name": "id",
      "type": "uint256"
     },
     {
      "internalType": "address",
      "name": "owner",
      "type": "address"
     },
     {
      "internalType": "address",
      "name": "target",
      "type": "address"
     },
     {
      "internalType": "bytes4",
      "name": "selector",
      "type": "bytes4"
     },
     {
      "internalType": "bytes",
      "name": "args",
      "type": "bytes"
     },
     {
      "internalType": "uint256",
      "name": "nextRunAt",
      "type": "uint256"
     },
     {
      "internalType": "uint256",
      "name": "intervalSec",
      "type": "uint256"
     },
     {
      "internalType": "uint256",
      "name": "maxRuns",
      "type": "uint256"
     },
     {
      "internalType": "uint256",
      "name": "runsLeft",
      "type": "uint256"
     },
     {
      "internalType": "uint256",
      "name": "gasLimit",
      "type": "uint256"
     },
     {
      "internalType": "uint256",
      "name": "gasEscrow",
      "type": "uint256"
     }
    ],
    "internalType": "struct ICronRegistry.Job",
    "name": "",
    "type": "tuple"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "target",
    "type": "address"
   },
   {
    "internalType": "string",
    "name": "method",
    "type": "string"
   },
   {
    "internalType": "bytes",
    "name": "args",
    "type": "bytes"
   },
   {
    "internalType": "uint256",
    "name": "nextRunAt",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "intervalSec",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "maxRuns",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "gasLimit",
    "type": "uint256"
   }
  ],
  "name": "schedule",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "stateMutability": "payable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "target",
    "type": "address"
   },
   {
    "internalType": "bytes",
    "name": "data",
    "type": "bytes"
   },
   {
    "internalType": "uint256",
    "name": "nextRunAt",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "intervalSec",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "maxRuns",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "gasLimit",
    "type": "uint256"
   }
  ],
  "name": "scheduleCalldata",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "stateMutability": "payable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "target",
    "type": "address"
   },
   {
    "internalType": "bytes",
    "name": "data",
    "type": "bytes"
   },
   {
    "internalType": "uint256",
    "name": "nextRunAt",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "intervalSec",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "maxRuns",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "gasLimit",
    "type": "uint256"
   },
   {
    "internalType": "address",
    "name": "refundTo",
    "type": "address"
   },
   {
    "internalType": "uint256",
    "name": "options",
    "type": "uint256"
   }
  ],
  "name": "scheduleWith",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "stateMutability": "payable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "name": "topUp",
  "outputs": [
   {
    "internalType": "bool",
    "name": "",
    "type": "bool"
   }
  ],
  "stateMutability": "payable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   }
  ],
  "name": "CallerIsSystem",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "DelegateCallRefused",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "LedgerAnswersNoCall",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "owed",
    "type": "uint256"
   }
  ],
  "name": "LedgerShort",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "MalformedArguments",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "NoScheduleId",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "value",
    "type": "uint256"
   }
  ],
  "name": "NotPayable",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "StaticCallRefused",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "TooManySchedules",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "UnknownMethod",
  "type": "error"
 }
] as const;

/** ABI of contracts/IScheduledTransactions.sol. */
export const marketAbi = [
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "txnId",
    "type": "bytes32"
   },
   {
    "internalType": "enum IScheduledTransactions.Status",
    "name": "status",
    "type": "uint8"
   }
  ],
  "name": "AlreadyEnded",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "txnId",
    "type": "bytes32"
   }
  ],
  "name": "AlreadyExecuted",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "needed",
    "type": "uint256"
   }
  ],
  "name": "DepositTooLow",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "ExpiryOutOfBounds",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "min",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "GasAmountOutOfBounds",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "baseFee",
    "type": "uint256"
   }
  ],
  "name": "GasUnitPriceTooLow",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "InputTooLong",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "txnId",
    "type": "bytes32"
   },
   {
    "internalType": "enum IScheduledTransactions.Status",
    "name": "status",
    "type": "uint8"
   }
  ],
  "name": "NotClaimable",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   },
   {
    "internalType": "address",
    "name": "senderAddr",
    "type": "address"
   }
  ],
  "name": "NotSender",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "enum IScheduledTransactions.Service",
    "name": "service",
    "type": "uint8"
   }
  ],
  "name": "ServiceNotActive",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "TargetIsZero",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "TimeBeyondHorizon",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "nowMs",
    "type": "uint256"
   }
  ],
  "name": "TimeNotInFuture",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "txnId",
    "type": "bytes32"
   }
  ],
  "name": "UnknownKey",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "string",
    "name": "reason",
    "type": "string"
   }
  ],
  "name": "Unreadable",
  "type": "error"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "address",
    "name": "senderAddr",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "uint64",
    "name": "epoch",
    "type": "uint64"
   }
  ],
  "name": "AllCancelledEvent",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": false,
    "internalType": "bool",
    "name": "complete",
    "type": "bool"
   }
  ],
  "name": "ShutdownEvent",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "senderAddr",
    "type": "address"
   },
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "indexed": false,
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "key",
    "type": "tuple"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "refunded",
    "type": "uint256"
   }
  ],
  "name": "TransactionCancelledEvent",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "senderAddr",
    "type": "address"
   },
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "indexed": false,
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "key",
    "type": "tuple"
   },
   {
    "indexed": false,
    "internalType": "bool",
    "name": "success",
    "type": "bool"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "gasUsed",
    "type": "uint256"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "gasUnitPriceCharged",
    "type": "uint256"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "refunded",
    "type": "uint256"
   }
  ],
  "name": "TransactionExecutedEvent",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "senderAddr",
    "type": "address"
   },
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "indexed": false,
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "key",
    "type": "tuple"
   },
   {
    "indexed": false,
    "internalType": "enum IScheduledTransactions.CancelledTxnCode",
    "name": "cancelledTxnCode",
    "type": "uint8"
   },
   {
    "indexed": false,
    "internalType": "bytes",
    "name": "reason",
    "type": "bytes"
   }
  ],
  "name": "TransactionFailedEvent",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "senderAddr",
    "type": "address"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "to",
    "type": "address"
   },
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "indexed": false,
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "key",
    "type": "tuple"
   }
  ],
  "name": "TransactionScheduledEvent",
  "type": "event"
 },
 {
  "inputs": [
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "key",
    "type": "tuple"
   }
  ],
  "name": "cancel",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "refunded",
    "type": "uint256"
   }
  ],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [],
  "name": "cancelAll",
  "outputs": [
   {
    "internalType": "uint64",
    "name": "epoch",
    "type": "uint64"
   }
  ],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "key",
    "type": "tuple"
   }
  ],
  "name": "claim",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "refunded",
    "type": "uint256"
   }
  ],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "key",
    "type": "tuple"
   }
  ],
  "name": "get",
  "outputs": [
   {
    "components": [
     {
      "internalType": "address",
      "name": "senderAddr",
      "type": "address"
     },
     {
      "internalType": "uint64",
      "name": "scheduledTimeMs",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "maxGasAmount",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "maxGasUnitPrice",
      "type": "uint64"
     },
     {
      "internalType": "bool",
      "name": "passSigner",
      "type": "bool"
     },
     {
      "internalType": "address",
      "name": "to",
      "type": "address"
     },
     {
      "internalType": "uint256",
      "name": "value",
      "type": "uint256"
     },
     {
      "internalType": "bytes",
      "name": "data",
      "type": "bytes"
     },
     {
      "internalType": "uint32",
      "name": "expiryBlocks",
      "type": "uint32"
     }
    ],
    "internalType": "struct IScheduledTransactions.ScheduledTransaction",
    "name": "",
    "type": "tuple"
   },
   {
    "internalType": "enum IScheduledTransactions.Status",
    "name": "",
    "type": "uint8"
   },
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "deposit",
    "type": "uint256"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "components": [
     {
      "internalType": "address",
      "name": "senderAddr",
      "type": "address"
     },
     {
      "internalType": "uint64",
      "name": "scheduledTimeMs",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "maxGasAmount",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "maxGasUnitPrice",
      "type": "uint64"
     },
     {
      "internalType": "bool",
      "name": "passSigner",
      "type": "bool"
     },
     {
      "internalType": "address",
      "name": "to",
      "type": "address"
     },
     {
      "internalType": "uint256",
      "name": "value",
      "type": "uint256"
     },
     {
      "internalType": "bytes",
      "name": "data",
      "type": "bytes"
     },
     {
      "internalType": "uint32",
      "name": "expiryBlocks",
      "type": "uint32"
     }
    ],
    "internalType": "struct IScheduledTransactions.ScheduledTransaction",
    "name": "txn",
    "type": "tuple"
   }
  ],
  "name": "insert",
  "outputs": [
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "",
    "type": "tuple"
   }
  ],
  "stateMutability": "payable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "name": "keyOf",
  "outputs": [
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "time",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "gasPriority",
      "type": "uint64"
     },
     {
      "internalType": "bytes32",
      "name": "txnId",
      "type": "bytes32"
     }
    ],
    "internalType": "struct IScheduledTransactions.ScheduleMapKey",
    "name": "",
    "type": "tuple"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [],
  "name": "nowMs",
  "outputs": [
   {
    "internalType": "uint64",
    "name": "",
    "type": "uint64"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [],
  "name": "service",
  "outputs": [
   {
    "internalType": "enum IScheduledTransactions.Service",
    "name": "",
    "type": "uint8"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   }
  ],
  "name": "CallerIsSystem",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "DelegateCallRefused",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "LedgerAnswersNoCall",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "owed",
    "type": "uint256"
   }
  ],
  "name": "LedgerShort",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "MalformedArguments",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "NoScheduleId",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "value",
    "type": "uint256"
   }
  ],
  "name": "NotPayable",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "StaticCallRefused",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "TooManySchedules",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "UnknownMethod",
  "type": "error"
 }
] as const;

/** ABI of contracts/ICallbackScheduler.sol. */
export const callbacksAbi = [
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "DataTooLong",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "EffortTooHigh",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "min",
    "type": "uint256"
   }
  ],
  "name": "EffortTooLow",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "needed",
    "type": "uint256"
   }
  ],
  "name": "FeeTooLow",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "handler",
    "type": "address"
   },
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   }
  ],
  "name": "HandlerNotAllowed",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "timestamp",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "effort",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "available",
    "type": "uint256"
   }
  ],
  "name": "NoCapacity",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   },
   {
    "internalType": "address",
    "name": "owner",
    "type": "address"
   }
  ],
  "name": "NotOwner",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   },
   {
    "internalType": "enum ICallbackScheduler.Status",
    "name": "status",
    "type": "uint8"
   }
  ],
  "name": "NotScheduled",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "SchedulerDisabled",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "SchedulerPaused",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "TimestampBeyondHorizon",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "blockTime",
    "type": "uint256"
   }
  ],
  "name": "TimestampNotInFuture",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "id",
    "type": "uint256"
   }
  ],
  "name": "UnknownCallback",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "string",
    "name": "reason",
    "type": "string"
   }
  ],
  "name": "Unreadable",
  "type": "error"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "refunded",
    "type": "uint256"
   }
  ],
  "name": "CallbackCanceled",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   }
  ],
  "name": "CallbackExecuted",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": false,
    "internalType": "bytes",
    "name": "reason",
    "type": "bytes"
   }
  ],
  "name": "CallbackFailed",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": false,
    "internalType": "uint64",
    "name": "executionEffort",
    "type": "uint64"
   }
  ],
  "name": "CallbackProcessed",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "amount",
    "type": "uint256"
   }
  ],
  "name": "CallbackRefunded",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "owner",
    "type": "address"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "handler",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "uint64",
    "name": "timestamp",
    "type": "uint64"
   },
   {
    "indexed": false,
    "internalType": "enum ICallbackScheduler.Priority",
    "name": "priority",
    "type": "uint8"
   },
   {
    "indexed": false,
    "internalType": "uint64",
    "name": "executionEffort",
    "type": "uint64"
   }
  ],
  "name": "CallbackScheduled",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "address",
    "name": "handler",
    "type": "address"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "scheduler",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "bool",
    "name": "allowed",
    "type": "bool"
   }
  ],
  "name": "SchedulerSet",
  "type": "event"
 },
 {
  "inputs": [
   {
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   }
  ],
  "name": "cancel",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "refunded",
    "type": "uint256"
   }
  ],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "bytes",
    "name": "data",
    "type": "bytes"
   },
   {
    "internalType": "uint64",
    "name": "timestamp",
    "type": "uint64"
   },
   {
    "internalType": "enum ICallbackScheduler.Priority",
    "name": "priority",
    "type": "uint8"
   },
   {
    "internalType": "uint64",
    "name": "executionEffort",
    "type": "uint64"
   }
  ],
  "name": "estimate",
  "outputs": [
   {
    "components": [
     {
      "internalType": "uint256",
      "name": "fee",
      "type": "uint256"
     },
     {
      "internalType": "uint64",
      "name": "timestamp",
      "type": "uint64"
     },
     {
      "internalType": "bytes",
      "name": "reason",
      "type": "bytes"
     }
    ],
    "internalType": "struct ICallbackScheduler.EstimatedCallback",
    "name": "callback",
    "type": "tuple"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint64",
    "name": "timestamp",
    "type": "uint64"
   },
   {
    "internalType": "enum ICallbackScheduler.Priority",
    "name": "priority",
    "type": "uint8"
   }
  ],
  "name": "getSlotAvailableEffort",
  "outputs": [
   {
    "internalType": "uint64",
    "name": "effort",
    "type": "uint64"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   }
  ],
  "name": "getStatus",
  "outputs": [
   {
    "internalType": "enum ICallbackScheduler.Status",
    "name": "status",
    "type": "uint8"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "handler",
    "type": "address"
   },
   {
    "internalType": "address",
    "name": "scheduler",
    "type": "address"
   }
  ],
  "name": "mayScheduleCallback",
  "outputs": [
   {
    "internalType": "bool",
    "name": "allowed",
    "type": "bool"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "handler",
    "type": "address"
   },
   {
    "internalType": "bytes",
    "name": "data",
    "type": "bytes"
   },
   {
    "internalType": "uint64",
    "name": "timestamp",
    "type": "uint64"
   },
   {
    "internalType": "enum ICallbackScheduler.Priority",
    "name": "priority",
    "type": "uint8"
   },
   {
    "internalType": "uint64",
    "name": "executionEffort",
    "type": "uint64"
   }
  ],
  "name": "schedule",
  "outputs": [
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "id",
      "type": "uint64"
     },
     {
      "internalType": "uint64",
      "name": "timestamp",
      "type": "uint64"
     },
     {
      "internalType": "enum ICallbackScheduler.Status",
      "name": "status",
      "type": "uint8"
     }
    ],
    "internalType": "struct ICallbackScheduler.ScheduledCallback",
    "name": "callback",
    "type": "tuple"
   }
  ],
  "stateMutability": "payable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "scheduler",
    "type": "address"
   },
   {
    "internalType": "bool",
    "name": "allowed",
    "type": "bool"
   }
  ],
  "name": "setScheduler",
  "outputs": [],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   }
  ],
  "name": "CallerIsSystem",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "DelegateCallRefused",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "LedgerAnswersNoCall",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "owed",
    "type": "uint256"
   }
  ],
  "name": "LedgerShort",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "MalformedArguments",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "NoScheduleId",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "value",
    "type": "uint256"
   }
  ],
  "name": "NotPayable",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "StaticCallRefused",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "TooManySchedules",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "UnknownMethod",
  "type": "error"
 }
] as const;

/** ABI of contracts/IAccounts.sol. */
export const accountsAbi = [
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   }
  ],
  "name": "AccountTaken",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "offset",
    "type": "uint256"
   },
   {
    "internalType": "string",
    "name": "reason",
    "type": "string"
   }
  ],
  "name": "KeyRefused",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "NotTopLevel",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "ProofMissing",
  "type": "error"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "address",
    "name": "account",
    "type": "address"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "creator",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "bytes",
    "name": "key",
    "type": "bytes"
   }
  ],
  "name": "AccountCreated",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "address",
    "name": "account",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "uint64",
    "name": "rotation",
    "type": "uint64"
   },
   {
    "indexed": false,
    "internalType": "bytes",
    "name": "key",
    "type": "bytes"
   }
  ],
  "name": "KeyRotated",
  "type": "event"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "ed25519",
    "type": "bytes32"
   }
  ],
  "name": "addressOfKey",
  "outputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "bytes",
    "name": "key",
    "type": "bytes"
   },
   {
    "internalType": "bytes32",
    "name": "salt",
    "type": "bytes32"
   }
  ],
  "name": "createAccount",
  "outputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   }
  ],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   },
   {
    "internalType": "bytes32",
    "name": "digest",
    "type": "bytes32"
   },
   {
    "internalType": "bytes[]",
    "name": "signatures",
    "type": "bytes[]"
   }
  ],
  "name": "isSatisfied",
  "outputs": [
   {
    "internalType": "bool",
    "name": "",
    "type": "bool"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   }
  ],
  "name": "keyOf",
  "outputs": [
   {
    "internalType": "bytes",
    "name": "key",
    "type": "bytes"
   },
   {
    "internalType": "uint64",
    "name": "rotation",
    "type": "uint64"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "bytes",
    "name": "key",
    "type": "bytes"
   },
   {
    "internalType": "bytes[]",
    "name": "proofs",
    "type": "bytes[]"
   }
  ],
  "name": "rotateKey",
  "outputs": [],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   },
   {
    "internalType": "bytes",
    "name": "key",
    "type": "bytes"
   }
  ],
  "name": "rotationDigest",
  "outputs": [
   {
    "internalType": "bytes32",
    "name": "",
    "type": "bytes32"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   }
  ],
  "name": "CallerIsSystem",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "DelegateCallRefused",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "LedgerAnswersNoCall",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "owed",
    "type": "uint256"
   }
  ],
  "name": "LedgerShort",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "MalformedArguments",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "NoScheduleId",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "value",
    "type": "uint256"
   }
  ],
  "name": "NotPayable",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "StaticCallRefused",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "TooManySchedules",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "UnknownMethod",
  "type": "error"
 }
] as const;

/** ABI of contracts/IScheduleService.sol. */
export const signedAbi = [
 {
  "inputs": [
   {
    "internalType": "int64",
    "name": "responseCode",
    "type": "int64"
   }
  ],
  "name": "Refused",
  "type": "error"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "creator",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "address",
    "name": "payer",
    "type": "address"
   },
   {
    "indexed": false,
    "internalType": "uint32",
    "name": "round",
    "type": "uint32"
   }
  ],
  "name": "ScheduleCreated",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   }
  ],
  "name": "ScheduleDeleted",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": false,
    "internalType": "int64",
    "name": "code",
    "type": "int64"
   }
  ],
  "name": "ScheduleExecuted",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   }
  ],
  "name": "ScheduleExpired",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "creator",
    "type": "address"
   }
  ],
  "name": "ScheduleFound",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   },
   {
    "indexed": false,
    "internalType": "bytes",
    "name": "key",
    "type": "bytes"
   }
  ],
  "name": "ScheduleSigned",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "uint64",
    "name": "id",
    "type": "uint64"
   }
  ],
  "name": "ScheduleTriggered",
  "type": "event"
 },
 {
  "inputs": [
   {
    "internalType": "bytes",
    "name": "transactionBody",
    "type": "bytes"
   },
   {
    "internalType": "bytes",
    "name": "adminKey",
    "type": "bytes"
   },
   {
    "internalType": "address",
    "name": "payer",
    "type": "address"
   },
   {
    "components": [
     {
      "internalType": "bytes",
      "name": "key",
      "type": "bytes"
     },
     {
      "internalType": "bytes",
      "name": "signature",
      "type": "bytes"
     },
     {
      "internalType": "uint64",
      "name": "deadline",
      "type": "uint64"
     }
    ],
    "internalType": "struct IScheduleService.SignatureEntry[]",
    "name": "sigMap",
    "type": "tuple[]"
   }
  ],
  "name": "createSchedule",
  "outputs": [
   {
    "internalType": "uint64",
    "name": "scheduleID",
    "type": "uint64"
   }
  ],
  "stateMutability": "payable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint64",
    "name": "scheduleID",
    "type": "uint64"
   },
   {
    "components": [
     {
      "internalType": "bytes",
      "name": "key",
      "type": "bytes"
     },
     {
      "internalType": "bytes",
      "name": "signature",
      "type": "bytes"
     },
     {
      "internalType": "uint64",
      "name": "deadline",
      "type": "uint64"
     }
    ],
    "internalType": "struct IScheduleService.SignatureEntry[]",
    "name": "sigMap",
    "type": "tuple[]"
   }
  ],
  "name": "deleteSchedule",
  "outputs": [],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   }
  ],
  "name": "fund",
  "outputs": [],
  "stateMutability": "payable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   }
  ],
  "name": "fundOf",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "amount",
    "type": "uint256"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint64",
    "name": "scheduleID",
    "type": "uint64"
   }
  ],
  "name": "getScheduleInfo",
  "outputs": [
   {
    "internalType": "int64",
    "name": "responseCode",
    "type": "int64"
   },
   {
    "components": [
     {
      "internalType": "uint64",
      "name": "scheduleID",
      "type": "uint64"
     },
     {
      "internalType": "address",
      "name": "creatorAccountID",
      "type": "address"
     },
     {
      "internalType": "address",
      "name": "payerAccountID",
      "type": "address"
     },
     {
      "internalType": "bytes",
      "name": "transactionBody",
      "type": "bytes"
     },
     {
      "internalType": "bytes[]",
      "name": "signers",
      "type": "bytes[]"
     },
     {
      "internalType": "bytes",
      "name": "adminKey",
      "type": "bytes"
     },
     {
      "internalType": "uint32",
      "name": "round",
      "type": "uint32"
     },
     {
      "internalType": "uint64",
      "name": "expiresAt",
      "type": "uint64"
     },
     {
      "internalType": "uint8",
      "name": "ended",
      "type": "uint8"
     },
     {
      "internalType": "uint64",
      "name": "endedAt",
      "type": "uint64"
     }
    ],
    "internalType": "struct IScheduleService.Info",
    "name": "info",
    "type": "tuple"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "second",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "gasLimit",
    "type": "uint256"
   }
  ],
  "name": "hasScheduleCapacity",
  "outputs": [
   {
    "internalType": "bool",
    "name": "hasCapacity",
    "type": "bool"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "bytes",
    "name": "transactionBody",
    "type": "bytes"
   },
   {
    "internalType": "bytes",
    "name": "adminKey",
    "type": "bytes"
   },
   {
    "internalType": "address",
    "name": "payer",
    "type": "address"
   }
  ],
  "name": "roundOf",
  "outputs": [
   {
    "internalType": "uint32",
    "name": "round",
    "type": "uint32"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint64",
    "name": "scheduleID",
    "type": "uint64"
   },
   {
    "components": [
     {
      "internalType": "bytes",
      "name": "key",
      "type": "bytes"
     },
     {
      "internalType": "bytes",
      "name": "signature",
      "type": "bytes"
     },
     {
      "internalType": "uint64",
      "name": "deadline",
      "type": "uint64"
     }
    ],
    "internalType": "struct IScheduleService.SignatureEntry[]",
    "name": "sigMap",
    "type": "tuple[]"
   }
  ],
  "name": "signSchedule",
  "outputs": [],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "amount",
    "type": "uint256"
   }
  ],
  "name": "withdraw",
  "outputs": [],
  "stateMutability": "nonpayable",
  "type": "function"
 }
] as const;

/** ABI of contracts/IParameters.sol. */
export const parametersAbi = [
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "cronBlockGas",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "blockGas",
    "type": "uint256"
   }
  ],
  "name": "CronAboveHalfBlock",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "count",
    "type": "uint256"
   }
  ],
  "name": "IndexOutOfBounds",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   },
   {
    "internalType": "address",
    "name": "owner",
    "type": "address"
   }
  ],
  "name": "NotOwner",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   },
   {
    "internalType": "address",
    "name": "pendingOwner",
    "type": "address"
   }
  ],
  "name": "NotPendingOwner",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "name",
    "type": "bytes32"
   },
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "min",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "ParameterOutOfBounds",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "current",
    "type": "uint256"
   }
  ],
  "name": "ReservedFalls",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "secondGas",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "blockGas",
    "type": "uint256"
   }
  ],
  "name": "SecondAboveBlock",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "own",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "shared",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "SecondTooLarge",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "name",
    "type": "bytes32"
   }
  ],
  "name": "UnknownParameter",
  "type": "error"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "address",
    "name": "previousOwner",
    "type": "address"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "newOwner",
    "type": "address"
   }
  ],
  "name": "OwnershipTransferStarted",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "address",
    "name": "previousOwner",
    "type": "address"
   },
   {
    "indexed": true,
    "internalType": "address",
    "name": "newOwner",
    "type": "address"
   }
  ],
  "name": "OwnershipTransferred",
  "type": "event"
 },
 {
  "anonymous": false,
  "inputs": [
   {
    "indexed": true,
    "internalType": "bytes32",
    "name": "name",
    "type": "bytes32"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "oldValue",
    "type": "uint256"
   },
   {
    "indexed": false,
    "internalType": "uint256",
    "name": "newValue",
    "type": "uint256"
   }
  ],
  "name": "ParameterSet",
  "type": "event"
 },
 {
  "inputs": [],
  "name": "acceptOwnership",
  "outputs": [],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "name",
    "type": "bytes32"
   }
  ],
  "name": "bounds",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "min",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [],
  "name": "count",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "parameters",
    "type": "uint256"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "name",
    "type": "bytes32"
   }
  ],
  "name": "get",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "value",
    "type": "uint256"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "index",
    "type": "uint256"
   }
  ],
  "name": "nameAt",
  "outputs": [
   {
    "internalType": "bytes32",
    "name": "name",
    "type": "bytes32"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "name",
    "type": "bytes32"
   }
  ],
  "name": "next",
  "outputs": [
   {
    "internalType": "uint256",
    "name": "value",
    "type": "uint256"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [],
  "name": "owner",
  "outputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [],
  "name": "pendingOwner",
  "outputs": [
   {
    "internalType": "address",
    "name": "account",
    "type": "address"
   }
  ],
  "stateMutability": "view",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "bytes32",
    "name": "name",
    "type": "bytes32"
   },
   {
    "internalType": "uint256",
    "name": "value",
    "type": "uint256"
   }
  ],
  "name": "set",
  "outputs": [],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "newOwner",
    "type": "address"
   }
  ],
  "name": "transferOwnership",
  "outputs": [],
  "stateMutability": "nonpayable",
  "type": "function"
 },
 {
  "inputs": [
   {
    "internalType": "address",
    "name": "caller",
    "type": "address"
   }
  ],
  "name": "CallerIsSystem",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "DelegateCallRefused",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "LedgerAnswersNoCall",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "owed",
    "type": "uint256"
   }
  ],
  "name": "LedgerShort",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "MalformedArguments",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "NoScheduleId",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "value",
    "type": "uint256"
   }
  ],
  "name": "NotPayable",
  "type": "error"
 },
 {
  "inputs": [],
  "name": "StaticCallRefused",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "uint256",
    "name": "given",
    "type": "uint256"
   },
   {
    "internalType": "uint256",
    "name": "max",
    "type": "uint256"
   }
  ],
  "name": "TooManySchedules",
  "type": "error"
 },
 {
  "inputs": [
   {
    "internalType": "bytes4",
    "name": "selector",
    "type": "bytes4"
   }
  ],
  "name": "UnknownMethod",
  "type": "error"
 }
] as const;
