// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Ed25519 over messages of 32 bytes, as strict as the chain: canonical encodings, no point of small order, no cofactor.
/// For tests alone: it is slow, about two million gas for a signature.
library Ed25519 {
    uint256 private constant P = 2 ** 255 - 19;
    /// The order of the group.
    uint256 private constant L = 2 ** 252 + 27742317777372353535851937790883648493;
    /// 2^256 modulo that order.
    uint256 private constant SHIFT = 0x0ffffffffffffffffffffffffffffffec6ef5bf4737dcf70d6ec31748d98951d;
    /// The curve's constant, -121665/121666.
    uint256 private constant D = 0x52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3;
    uint256 private constant SQRT_MINUS_1 = 0x2b8324804fc1df0b2b4d00993dfbd7a72f431806ad2fe478c4ee1b274a0ea0b0;
    uint256 private constant BASE_X = 0x216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2c9562d608f25d51a;
    uint256 private constant BASE_Y = 0x6666666666666666666666666666666666666666666666666666666666666658;

    /// A point in extended coordinates: x = X/Z, y = Y/Z, T = XY/Z.
    struct Point {
        uint256 x;
        uint256 y;
        uint256 z;
        uint256 t;
    }

    /// Whether a key is a canonical point that can verify anything of value.
    function isUsable(bytes32 key) internal view returns (bool usable) {
        (usable,) = _decode(key);
    }

    /// Whether (r, s) is the key's signature of a message: s * base = r + hash * key.
    function isValid(bytes32 key, bytes32 message, bytes32 r, bytes32 s) internal view returns (bool) {
        (bool isKey, Point memory a) = _decode(key);
        (bool isNonce, Point memory nonce) = _decode(r);
        uint256 scalar = _reversed(uint256(s));
        if (!isKey || !isNonce || scalar >= L) return false;
        (uint256 first, uint256 second) = _sha512(uint256(r), uint256(key), uint256(message));
        uint256 hash = addmod(mulmod(_reversed(second), SHIFT, L), _reversed(first), L);
        Point memory sum = _combined(scalar, hash, _negated(a));
        bool isSameX = sum.x == mulmod(nonce.x, sum.z, P);
        return isSameX && sum.y == mulmod(nonce.y, sum.z, P);
    }

    // ---- The curve ----

    /// The point with this canonical encoding, unless its order is small.
    function _decode(bytes32 encoded) private view returns (bool isUsable_, Point memory point) {
        uint256 y = _reversed(uint256(encoded));
        uint256 sign = y >> 255;
        y &= type(uint256).max >> 1;
        if (y >= P) return (false, point);
        uint256 square = mulmod(y, y, P);
        (uint256 u, uint256 v) = (addmod(square, P - 1, P), addmod(mulmod(D, square, P), 1, P));
        // The root of u/v, by u v^3 (u v^7)^((p-5)/8).
        uint256 v3 = mulmod(mulmod(v, v, P), v, P);
        uint256 power = _power(mulmod(u, mulmod(mulmod(v3, v3, P), v, P), P), (P - 5) / 8);
        uint256 x = mulmod(mulmod(u, v3, P), power, P);
        uint256 found = mulmod(v, mulmod(x, x, P), P);
        if (found != u) {
            if (addmod(found, u, P) != 0) return (false, point);
            x = mulmod(x, SQRT_MINUS_1, P);
        }
        if (x == 0 && sign == 1) return (false, point);
        if (x % 2 != sign) x = P - x;
        point = Point(x, y, 1, mulmod(x, y, P));
        Point memory eightfold = _sum(point, point);
        for (uint256 i; i < 2; i++) eightfold = _sum(eightfold, eightfold);
        return (!(eightfold.x == 0 && eightfold.y == eightfold.z), point);
    }

    /// m * base + n * other.
    function _combined(uint256 m, uint256 n, Point memory other) private pure returns (Point memory sum) {
        Point memory base = Point(BASE_X, BASE_Y, 1, mulmod(BASE_X, BASE_Y, P));
        Point memory both = _sum(base, other);
        sum = Point(0, 1, 1, 0);
        for (uint256 bit = 253; bit > 0;) {
            bit--;
            sum = _sum(sum, sum);
            (bool hasM, bool hasN) = ((m >> bit) & 1 == 1, (n >> bit) & 1 == 1);
            if (hasM && hasN) sum = _sum(sum, both);
            else if (hasM) sum = _sum(sum, base);
            else if (hasN) sum = _sum(sum, other);
        }
    }

    function _negated(Point memory p) private pure returns (Point memory) {
        return Point(p.x == 0 ? 0 : P - p.x, p.y, p.z, p.t == 0 ? 0 : P - p.t);
    }

    /// The sum of any two points of the curve, equal ones too.
    function _sum(Point memory p, Point memory q) private pure returns (Point memory) {
        uint256 a = mulmod(addmod(p.y, P - p.x, P), addmod(q.y, P - q.x, P), P);
        uint256 b = mulmod(addmod(p.y, p.x, P), addmod(q.y, q.x, P), P);
        uint256 c = mulmod(mulmod(addmod(D, D, P), p.t, P), q.t, P);
        uint256 d = mulmod(addmod(p.z, p.z, P), q.z, P);
        (uint256 e, uint256 f) = (addmod(b, P - a, P), addmod(d, P - c, P));
        (uint256 g, uint256 h) = (addmod(d, c, P), addmod(b, a, P));
        return Point(mulmod(e, f, P), mulmod(g, h, P), mulmod(f, g, P), mulmod(e, h, P));
    }

    function _power(uint256 base, uint256 exponent) private view returns (uint256) {
        bytes memory input = abi.encode(32, 32, 32, base, exponent, P);
        // The precompile of EIP-198.
        (bool done, bytes memory answer) = address(5).staticcall(input);
        require(done, "modexp");
        return abi.decode(answer, (uint256));
    }

    // ---- The hash ----

    /// SHA-512 of 96 bytes, which fit one block with its padding. Gives the two halves.
    function _sha512(uint256 a, uint256 b, uint256 c) private pure returns (uint256 first, uint256 second) {
        uint64[80] memory w;
        for (uint256 i; i < 4; i++) {
            w[i] = uint64(a >> (192 - 64 * i));
            w[4 + i] = uint64(b >> (192 - 64 * i));
            w[8 + i] = uint64(c >> (192 - 64 * i));
        }
        (w[12], w[15]) = (1 << 63, 96 * 8);
        unchecked {
            for (uint256 i = 16; i < 80; i++) {
                (uint64 x, uint64 y) = (w[i - 15], w[i - 2]);
                uint64 small = _turned(x, 1) ^ _turned(x, 8) ^ (x >> 7);
                uint64 large = _turned(y, 19) ^ _turned(y, 61) ^ (y >> 6);
                w[i] = w[i - 16] + small + w[i - 7] + large;
            }
        }
        return _compressed(w);
    }

    function _compressed(uint64[80] memory w) private pure returns (uint256 first, uint256 second) {
        uint64[8] memory start = [
            uint64(0x6a09e667f3bcc908),
            0xbb67ae8584caa73b,
            0x3c6ef372fe94f82b,
            0xa54ff53a5f1d36f1,
            0x510e527fade682d1,
            0x9b05688c2b3e6c1f,
            0x1f83d9abfb41bd6b,
            0x5be0cd19137e2179
        ];
        uint64[8] memory s;
        for (uint256 i; i < 8; i++) s[i] = start[i];
        bytes memory constants = ROUNDS;
        unchecked {
            for (uint256 i; i < 80; i++) {
                uint64 round;
                assembly ("memory-safe") {
                    round := shr(192, mload(add(add(constants, 32), mul(i, 8))))
                }
                uint64 mixed = _turned(s[4], 14) ^ _turned(s[4], 18) ^ _turned(s[4], 41);
                uint64 one = s[7] + mixed + ((s[4] & s[5]) ^ (~s[4] & s[6])) + round + w[i];
                mixed = _turned(s[0], 28) ^ _turned(s[0], 34) ^ _turned(s[0], 39);
                uint64 two = mixed + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
                (s[7], s[6], s[5], s[4]) = (s[6], s[5], s[4], s[3] + one);
                (s[3], s[2], s[1], s[0]) = (s[2], s[1], s[0], one + two);
            }
            for (uint256 i; i < 4; i++) {
                first = (first << 64) | (start[i] + s[i]);
                second = (second << 64) | (start[4 + i] + s[4 + i]);
            }
        }
    }

    function _turned(uint64 x, uint64 by) private pure returns (uint64) {
        return (x >> by) | (x << (64 - by));
    }

    /// The number whose little-endian bytes these are.
    function _reversed(uint256 word) private pure returns (uint256 reversed) {
        for (uint256 i; i < 32; i++) reversed |= ((word >> (8 * i)) & 0xff) << (248 - 8 * i);
    }

    /// The constants of the 80 rounds.
    bytes private constant ROUNDS =
        hex"428a2f98d728ae227137449123ef65cdb5c0fbcfec4d3b2fe9b5dba58189dbbc3956c25bf348b538"
        hex"59f111f1b605d019923f82a4af194f9bab1c5ed5da6d8118d807aa98a303024212835b0145706fbe"
        hex"243185be4ee4b28c550c7dc3d5ffb4e272be5d74f27b896f80deb1fe3b1696b19bdc06a725c71235"
        hex"c19bf174cf692694e49b69c19ef14ad2efbe4786384f25e30fc19dc68b8cd5b5240ca1cc77ac9c65"
        hex"2de92c6f592b02754a7484aa6ea6e4835cb0a9dcbd41fbd476f988da831153b5983e5152ee66dfab"
        hex"a831c66d2db43210b00327c898fb213fbf597fc7beef0ee4c6e00bf33da88fc2d5a79147930aa725"
        hex"06ca6351e003826f142929670a0e6e7027b70a8546d22ffc2e1b21385c26c9264d2c6dfc5ac42aed"
        hex"53380d139d95b3df650a73548baf63de766a0abb3c77b2a881c2c92e47edaee692722c851482353b"
        hex"a2bfe8a14cf10364a81a664bbc423001c24b8b70d0f89791c76c51a30654be30d192e819d6ef5218"
        hex"d69906245565a910f40e35855771202a106aa07032bbd1b819a4c116b8d2d0c81e376c085141ab53"
        hex"2748774cdf8eeb9934b0bcb5e19b48a8391c0cb3c5c95a634ed8aa4ae3418acb5b9cca4f7763e373"
        hex"682e6ff3d6b2b8a3748f82ee5defb2fc78a5636f43172f6084c87814a1f0ab728cc702081a6439ec"
        hex"90befffa23631e28a4506cebde82bde9bef9a3f7b2c67915c67178f2e372532bca273eceea26619c"
        hex"d186b8c721c0c207eada7dd6cde0eb1ef57d4f7fee6ed17806f067aa72176fba0a637dc5a2c898a6"
        hex"113f9804bef90dae1b710b35131c471b28db77f523047d8432caab7b40c724933c9ebe0a15c9bebc"
        hex"431d67c49c100d4c4cc5d4becb3e42b6597f299cfc657e2a5fcb6fab3ad6faec6c44198c4a475817";
}
