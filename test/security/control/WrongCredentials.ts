import type { ControlCase } from "./Case.ts"

type Headers = ReadonlyArray<readonly [string, string]>

const refused = (name: string, headers: Headers, code: string, status = 401): ReadonlyArray<ControlCase> => [
  { name: `credentials: ${name}`, method: "GET", path: "/v1/sources", headers, anonymous: true, status, code },
  {
    name: `credentials of a write: ${name}`,
    method: "POST",
    path: "/v1/sources",
    headers,
    anonymous: true,
    body: '{"name":"without-credentials"}',
    status,
    code
  }
]

const bearer = (token: string): Headers => [["Authorization", `Bearer ${token}`]]

export const wrongCredentials: ReadonlyArray<ControlCase> = [
  ...refused("no header", [], "UNAUTHENTICATED"),
  ...refused("an empty header", [["Authorization", ""]], "UNAUTHENTICATED"),
  ...refused("no token", [["Authorization", "Bearer"]], "UNAUTHENTICATED"),
  ...refused("an empty token", [["Authorization", "Bearer   "]], "UNAUTHENTICATED"),
  ...refused("another scheme", [["Authorization", "Basic Z3drX2NvbnRyYWN0X3Rlc3Rfa2V5Og=="]], "UNAUTHENTICATED"),
  ...refused("the key without a scheme", [["Authorization", "gwk_contract_test_key"]], "UNAUTHENTICATED"),
  ...refused("the key in another header", [["X-Api-Key", "gwk_contract_test_key"]], "UNAUTHENTICATED"),
  ...refused("a wrong key", bearer("gwk_contract_test_kex"), "INVALID_API_KEY"),
  ...refused("a key cut short", bearer("gwk_contract_test_ke"), "INVALID_API_KEY"),
  ...refused("a key with a suffix", bearer("gwk_contract_test_key2"), "INVALID_API_KEY"),
  ...refused("a key in capitals", bearer("GWK_CONTRACT_TEST_KEY"), "INVALID_API_KEY"),
  ...refused("SQL", bearer("' or '1'='1"), "INVALID_API_KEY"),
  ...refused("a key of 16 KiB", bearer("x".repeat(16_384)), "INVALID_API_KEY"),
  ...refused("non-ASCII bytes", bearer("\xff\xfe\x80"), "INVALID_API_KEY"),
  ...refused(
    "two keys in one header",
    bearer("gwk_contract_test_kex, Bearer gwk_contract_test_key"),
    "INVALID_API_KEY"
  ),
  ...refused(
    "two headers, the first wrong",
    [...bearer("gwk_contract_test_kex"), ...bearer("gwk_contract_test_key")],
    "INVALID_API_KEY"
  ),
  ...["", "x", "tm_1'", "tm_other", "undefined", "tm_other, tm_default"].flatMap((team): ReadonlyArray<ControlCase> =>
    team === ""
      ? []
      : [
          {
            name: `the team ${team}`,
            method: "POST",
            path: "/v1/sources",
            headers: [["X-Team-Id", team]],
            body: '{"name":"for-another-team"}',
            status: 403,
            code: "TEAM_FORBIDDEN"
          }
        ]
  )
]
