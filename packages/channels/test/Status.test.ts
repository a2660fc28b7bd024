import { describe, expect, it } from "vitest"
import { channelStatus, type StatusFacts } from "../src/machine/Status.ts"
import { initialState } from "../src/machine/State.ts"
import { dayMs, hourMs, minuteMs, nextOnGrid, renewalAt } from "../src/machine/Times.ts"

const now = Date.UTC(2026, 0, 2)

/** An id without jitter, as its last characters are zeros. */
const id = "chn_00000000000000000000000000"

const subscription = (part: Partial<StatusFacts["subscriptions"][number]> = {}) => ({
  id,
  target: "a",
  state: "active",
  created_at: now - dayMs,
  verified_at: now - dayMs,
  last_renewed_at: null,
  renew_at: null,
  expires_at: now + 6 * dayMs,
  ...part
})

const facts = (part: Partial<StatusFacts> = {}): StatusFacts => ({
  disabled: false,
  account: { state: "active" },
  needsAccount: true,
  expected: ["a"],
  state: initialState,
  subscriptions: [subscription()],
  alerts: [],
  now,
  ...part
})

const fallback = {
  ...initialState,
  fallback: { ...initialState.fallback, active: true, reason: "subscription_expired" }
}
const expired = { ...initialState, expired: true }

const table: ReadonlyArray<readonly [name: string, part: Partial<StatusFacts>, status: string, reason: string | null]> =
  [
    ["all targets are active", {}, "active", null],
    ["a perpetual subscription", { subscriptions: [subscription({ expires_at: null })] }, "active", null],
    ["no targets", { expected: [], subscriptions: [] }, "active", "no_targets"],
    ["no account where none is needed", { needsAccount: false, account: null }, "active", null],
    ["a silence alert", { alerts: ["channel_notification_silence"] }, "active", null],
    [
      "a renewal that the provider has just asked for",
      { subscriptions: [subscription({ renew_at: now - minuteMs })] },
      "active",
      null
    ],
    [
      "a renewal that the provider asked for, and that has not succeeded",
      { subscriptions: [subscription({ renew_at: now - 20 * minuteMs })] },
      "expiring",
      "renewal_due"
    ],
    ["a stop alert", { alerts: ["channel_stop_failed"] }, "active", null],
    ["polling has taken over", { state: fallback }, "fallback", "subscription_expired"],
    [
      "polling has taken over, and everything else is wrong too",
      { state: { ...fallback, expired: true }, account: null, alerts: ["channel_provision_failed"], subscriptions: [] },
      "fallback",
      "subscription_expired"
    ],
    ["no account", { account: null }, "error", "account_missing"],
    ["an expired account", { account: { state: "expired" } }, "error", "account_expired"],
    ["an account in error", { account: { state: "error" } }, "error", "account_expired"],
    ["a revoked account", { account: { state: "revoked" } }, "error", "account_revoked"],
    [
      "a revoked account and a provision alert",
      { account: { state: "revoked" }, alerts: ["channel_provision_failed"], subscriptions: [] },
      "error",
      "account_revoked"
    ],
    [
      "a provision alert",
      { alerts: ["channel_provision_failed", "channel_renewal_failed"], subscriptions: [] },
      "error",
      "provision_failed"
    ],
    ["a subscription has expired", { state: expired, subscriptions: [] }, "error", "subscription_expired"],
    ["a subscription had expired, and all are active", { state: expired }, "active", null],
    ["one of two targets is active", { expected: ["a", "b"] }, "connecting", "provisioning"],
    [
      "two subscriptions of one of two targets",
      { expected: ["a", "b"], subscriptions: [subscription(), subscription({ id: `${id}1` })] },
      "connecting",
      "provisioning"
    ],
    [
      "a handshake is missing",
      { subscriptions: [subscription({ state: "verifying", verified_at: null, expires_at: null })] },
      "connecting",
      "provisioning"
    ],
    ["a disabled source", { disabled: true, subscriptions: [] }, "connecting", "source_disabled"],
    ["a disabled source with a subscription to stop", { disabled: true }, "connecting", "source_disabled"],
    ["a disabled source without targets", { disabled: true, expected: [] }, "connecting", "source_disabled"],
    ["a renewal alert", { alerts: ["channel_renewal_failed"] }, "expiring", "renewal_failed"],
    [
      "a tenth of the life after the renewal time",
      {
        subscriptions: [
          subscription({ created_at: now - 6.5 * dayMs, verified_at: null, expires_at: now + 0.5 * dayMs })
        ]
      },
      "expiring",
      "renewal_due"
    ],
    [
      "shortly after the renewal time",
      {
        subscriptions: [
          subscription({ created_at: now - 5.7 * dayMs, verified_at: null, expires_at: now + 1.3 * dayMs })
        ]
      },
      "active",
      null
    ],
    [
      "an old subscription beside its successor",
      { subscriptions: [subscription({ expires_at: now + minuteMs }), subscription({ id: `${id}1` })] },
      "active",
      null
    ]
  ]

describe("Status of a channel", () => {
  for (const [name, part, status, reason] of table) {
    it(`The status of a channel is ${status}${reason === null ? "" : ` (${reason})`} with ${name}`, () => {
      expect(channelStatus(facts(part))).toMatchObject({ status, status_reason: reason })
    })
  }
})

describe("Times of a channel", () => {
  it("A subscription of a week is renewed a fifth of its life before its end, and at most a twentieth earlier", () => {
    const week = {
      created_at: now,
      verified_at: null,
      last_renewed_at: null,
      renew_at: null,
      expires_at: now + 7 * dayMs
    }
    expect(renewalAt({ id, ...week })).toBe(now + 5.6 * dayMs)
    const earliest = renewalAt({ id: `${id.slice(0, -4)}zzzz`, ...week })!
    expect(earliest).toBeLessThan(now + 5.3 * dayMs)
    expect(earliest).toBeGreaterThanOrEqual(now + 5.25 * dayMs)
  })

  it("A subscription of an hour is renewed 15 minutes before its end, and a shorter one at its half", () => {
    const life = (ms: number) =>
      renewalAt({ id, created_at: 0, verified_at: now, last_renewed_at: null, renew_at: null, expires_at: now + ms })
    expect(life(hourMs)).toBe(now + 45 * minuteMs)
    expect(life(10 * minuteMs)).toBe(now + 5 * minuteMs)
  })

  it("Life counts from the last renewal, and a perpetual subscription is never renewed", () => {
    const renewed = {
      id,
      created_at: 0,
      verified_at: 0,
      last_renewed_at: now,
      renew_at: null,
      expires_at: now + 7 * dayMs
    }
    expect(renewalAt(renewed)).toBe(now + 5.6 * dayMs)
    expect(renewalAt({ ...renewed, expires_at: null })).toBe(null)
  })

  it("A schedule stays on the grid of its source, however late a poll was", () => {
    expect(nextOnGrid(1_000, 5, 1_000)).toBe(301_000)
    expect(nextOnGrid(1_000, 5, 301_000)).toBe(601_000)
    expect(nextOnGrid(1_000, 5, 1_000 + dayMs + 1)).toBe(301_000 + dayMs)
  })
})
