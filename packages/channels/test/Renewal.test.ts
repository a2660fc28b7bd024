import { expect, it } from "vitest"
import type { Channel, ChannelSubscription } from "../src/machine/Channel.ts"
import { advance } from "../src/machine/Outcome.ts"
import { initialState, noFailures, type SubscriptionState } from "../src/machine/State.ts"
import { dayMs } from "../src/machine/Times.ts"
import { webSub } from "../src/providers/WebSub.ts"
import { definitionsOf } from "../src/SourceProviders.ts"

const now = Date.UTC(2026, 0, 10)
const definition = definitionsOf(webSub)[0]!
const inputs = { url: "https://example.com/feed.atom" }
const id = "chn_1"

const channelOf = (row: Partial<ChannelSubscription>): Channel => ({
  source_id: "src_1",
  team_id: "tm_1",
  created_at: now - 9 * dayMs,
  disabled: false,
  deleted: false,
  settings: {
    provider_key: webSub.key,
    definition_key: definition.key,
    provider_account_id: null,
    inputs,
    schedule: { interval_minutes: 5 },
    auto_fallback: true,
    max_failures: 3,
    restore_after_minutes: 30
  },
  definition,
  account: null,
  silence: { enabled: false, hours: 24 },
  state: { ...initialState, primed: true, polls: { ...initialState.polls, last_at: now } },
  dirty_at: null,
  run_id: null,
  retry_requested_at: null,
  subscriptions: [
    {
      id,
      adapter: "websub",
      definition_key: definition.key,
      account_id: null,
      target: definition.trigger.adapter!.targets(inputs)[0]!.key,
      external_channel_id: "https://hub.example.com/",
      external_resource_id: inputs.url,
      state: "active",
      created_at: now - 9 * dayMs,
      verified_at: now - 9 * dayMs,
      last_renewed_at: null,
      renew_at: null,
      expires_at: now + dayMs,
      last_notification_at: null,
      last_message_number: null,
      last_error: null,
      stop_at: null,
      stopped_at: null,
      forgotten_at: null,
      ...row
    }
  ],
  alerts: [],
  waiting: false
})

const remembered = (basis: string): SubscriptionState => ({
  basis,
  handshake_since: null,
  unsure: false,
  refusals: 0,
  was_active: true,
  renewal: noFailures,
  renewing: null,
  stop: noFailures,
  silent: false
})

const given = { now, subscriptionId: "chn_2", runId: "trun_1" }

it("A renewal whose handshake arrived before the hub's answer keeps the end that the handshake has brought", () => {
  const before = now + dayMs
  const first = advance(channelOf({ expires_at: before }), null, given)
  const basis = first.changes.state.basis!
  const state = {
    ...first.changes.state,
    subscriptions: {
      [id]: remembered(basis)
    }
  }
  const renewed = now + 10 * dayMs
  // The answer of the hub names the end that the call began with.
  const agreed = { externalChannelId: null, externalResourceId: null, expiresAt: before, state: "verifying" as const }
  const { after, changes } = advance(
    { ...channelOf({ expires_at: renewed }), state },
    { did: "renew", id, expires_at: before, agreed },
    given
  )
  expect(after.subscriptions).toMatchObject([{ id, state: "active", expires_at: renewed, last_renewed_at: now }])
  expect(changes.events.map(({ kind }) => kind)).toContain("renewal_succeeded")

  // Without it, the renewal waits for the handshake.
  const waits = advance(
    { ...channelOf({ expires_at: before }), state },
    { did: "renew", id, expires_at: before, agreed },
    given
  )
  expect(waits.after.state.subscriptions[id]!.renewing).toEqual({ since: now, expires_at: before })
  expect(waits.after.subscriptions).toMatchObject([{ id, expires_at: before }])
})

/** A renewal whose handshake has brought this end. `changes`: of the look that finds it. */
const afterHandshake = (expires_at: number) => {
  const before = now + dayMs
  const first = advance(channelOf({ expires_at: before }), null, given)
  const state = {
    ...first.changes.state,
    subscriptions: { [id]: { ...remembered(first.changes.state.basis!), renewing: { since: now, expires_at: before } } }
  }
  return advance({ ...channelOf({ expires_at }), state }, null, given)
}

it("A renewal succeeds although the hub grants a shorter lease than before", () => {
  const { after, changes, next } = afterHandshake(now + dayMs / 2)
  expect(after.subscriptions).toMatchObject([{ id, state: "active", last_renewed_at: now }])
  expect(changes.events.map(({ kind }) => kind)).toEqual(["renewal_succeeded"])
  expect(after.state.subscriptions[id]).toMatchObject({ renewing: null, renewal: { failures: 0 } })
  expect(next).toMatchObject({ do: "poll" })
})

it("A renewal fails if the hub grants a lease that is nearly over", () => {
  const { after, changes } = afterHandshake(now + 1_000)
  expect(changes.events.map(({ kind }) => kind)).toEqual(["renewal_failed"])
  expect(after.state.subscriptions[id]).toMatchObject({ renewing: null, renewal: { failures: 1 } })
})
