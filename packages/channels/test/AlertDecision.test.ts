import { describe, expect, it } from "vitest"
import {
  decideAlert,
  type Delivering,
  type DeliveryStatus,
  type Earlier,
  gapMs,
  type MessageKind,
  type Transport
} from "../src/alerts/AlertDecision.ts"

const minute = 60_000
const hour = 60 * minute
const t0 = 1_767_225_600_000

const both = { isEnabled: true, isConfigured: true }
const off = { isEnabled: false, isConfigured: true }
const bare = { isEnabled: true, isConfigured: false }
const settings = (email = both, chat = both): Delivering => ({ email, chat, cooldownMs: hour })

const past = (
  transport: Transport,
  kind: MessageKind,
  at: number,
  status: DeliveryStatus = "sent",
  isOwn = true
): Earlier => ({ transport, kind, at, status, isOwn })

const told = (decision: ReturnType<typeof decideAlert>) =>
  decision.messages.map(({ kind, outcome, transport }) =>
    [transport, kind, outcome.status, "reason" in outcome ? outcome.reason : "code" in outcome ? outcome.code : ""]
      .filter((part) => part !== "")
      .join(" ")
  )

describe("Decision about the messages of an alert", () => {
  const opened = [past("email", "opened", t0), past("chat", "opened", t0)]

  it.each<{
    readonly when: string
    readonly status?: "active" | "resolved"
    readonly earlier: ReadonlyArray<Earlier>
    readonly delivering?: Delivering
    readonly at: number
    readonly messages: ReadonlyArray<string>
    readonly next: number | null
  }>([
    {
      when: "new alert",
      earlier: [],
      at: t0,
      messages: ["email opened queued", "chat opened queued"],
      next: t0 + hour
    },
    {
      when: "new alert with everything off",
      earlier: [],
      delivering: settings(off, off),
      at: t0,
      messages: ["email opened suppressed disabled", "chat opened suppressed disabled"],
      next: t0 + hour
    },
    {
      when: "new alert with nothing set up",
      earlier: [],
      delivering: settings(bare, bare),
      at: t0,
      messages: ["email opened failed SMTP_NOT_CONFIGURED", "chat opened suppressed not_configured"],
      next: t0 + hour
    },
    { when: "alert within its cooldown", earlier: opened, at: t0 + 59 * minute, messages: [], next: t0 + hour },
    {
      when: "alert after its cooldown",
      earlier: opened,
      at: t0 + hour,
      messages: ["email reminder queued", "chat reminder queued"],
      next: t0 + 3 * hour
    },
    {
      when: "alert whose opened message failed",
      earlier: [past("email", "opened", t0, "failed"), past("chat", "opened", t0)],
      at: t0 + hour,
      messages: ["email reminder queued", "chat reminder queued"],
      next: t0 + 3 * hour
    },
    {
      when: "alert whose transport was switched on since",
      earlier: [past("email", "opened", t0, "suppressed"), past("chat", "opened", t0)],
      at: t0 + hour,
      messages: ["email opened queued", "chat reminder queued"],
      next: t0 + 3 * hour
    },
    {
      when: "alert that opens again within the cooldown of the earlier one",
      earlier: opened.map((one) => ({ ...one, isOwn: false })),
      at: t0 + 10 * minute,
      messages: ["email opened suppressed cooldown", "chat opened suppressed cooldown"],
      next: t0 + hour
    },
    {
      when: "alert that waits for that cooldown, and was recorded",
      earlier: [
        ...opened.map((one) => ({ ...one, isOwn: false })),
        past("email", "opened", t0 + 10 * minute, "suppressed"),
        past("chat", "opened", t0 + 10 * minute, "suppressed")
      ],
      at: t0 + 20 * minute,
      messages: [],
      next: t0 + hour
    },
    {
      when: "alert that has waited for that cooldown",
      earlier: [
        ...opened.map((one) => ({ ...one, isOwn: false })),
        past("email", "opened", t0 + 10 * minute, "suppressed"),
        past("chat", "opened", t0 + 10 * minute, "suppressed")
      ],
      at: t0 + hour,
      messages: ["email opened queued", "chat opened queued"],
      next: t0 + 2 * hour
    },
    {
      when: "resolved alert",
      status: "resolved",
      earlier: opened,
      at: t0 + minute,
      messages: ["email resolved queued", "chat resolved queued"],
      next: null
    },
    {
      when: "resolved alert that was told",
      status: "resolved",
      earlier: [...opened, past("email", "resolved", t0 + minute), past("chat", "resolved", t0 + minute, "failed")],
      at: t0 + 2 * minute,
      messages: [],
      next: null
    },
    {
      when: "resolved alert of which nobody was told",
      status: "resolved",
      earlier: [past("email", "opened", t0, "failed"), past("chat", "opened", t0, "suppressed")],
      at: t0 + minute,
      messages: [],
      next: null
    },
    {
      when: "resolved alert that nothing was decided about",
      status: "resolved",
      earlier: [],
      at: t0 + minute,
      messages: [],
      next: null
    },
    {
      when: "resolved alert whose chat was switched off",
      status: "resolved",
      earlier: opened,
      delivering: settings(both, off),
      at: t0 + minute,
      messages: ["email resolved queued", "chat resolved suppressed disabled"],
      next: null
    }
  ])(
    "Messages are decided for a $when",
    ({ at, delivering = settings(), earlier, messages, next, status = "active" }) => {
      const decision = decideAlert(status, earlier, delivering, at)
      expect(told(decision)).toEqual(messages)
      expect(decision.notifyAt).toBe(next)
    }
  )

  it("Gaps between reminders double up to a day, and are never shorter than the cooldown", () => {
    expect([1, 2, 3, 5, 6, 100].map((n) => gapMs(hour, n) / hour)).toEqual([1, 2, 4, 16, 24, 24])
    expect([1, 2, 3].map((n) => gapMs(48 * hour, n) / hour)).toEqual([48, 48, 48])
    // A week of an alert that stays active.
    const sent: Array<Earlier> = []
    let at: number | null = t0
    while (at !== null && at < t0 + 7 * 24 * hour) {
      const decision: ReturnType<typeof decideAlert> = decideAlert("active", sent, settings(both, off), at)
      for (const { kind, outcome, transport } of decision.messages) sent.push(past(transport, kind, at, outcome.status))
      at = decision.notifyAt
    }
    const hours = sent.filter(({ transport }) => transport === "email").map((one) => (one.at - t0) / hour)
    expect(hours).toEqual([0, 1, 3, 7, 15, 31, 55, 79, 103, 127, 151])
  })

  it("Every combination of transport, cooldown and resolution sends at most one message for a cooldown and resolves once", () => {
    for (const email of [both, off, bare]) {
      for (const chat of [both, off, bare]) {
        const delivering = settings(email, chat)
        const earlier: Array<Earlier> = []
        const decide = (status: "active" | "resolved", at: number): void => {
          for (const { kind, outcome, transport } of decideAlert(status, earlier, delivering, at).messages) {
            earlier.push(past(transport, kind, at, outcome.status === "queued" ? "sent" : outcome.status))
          }
        }
        // An alert that opens, is resolved and opens again every ten minutes, as new alerts of the same source and code.
        for (let n = 0; n < 36; n++) {
          const at = t0 + n * 10 * minute
          decide("active", at)
          decide("active", at + 1)
          decide("resolved", at + 5 * minute)
          decide("resolved", at + 6 * minute)
          for (const [place, one] of earlier.entries()) earlier[place] = { ...one, isOwn: false }
        }
        for (const transport of ["email", "chat"] as const) {
          const sent = earlier.filter((one) => one.transport === transport && one.status === "sent")
          const isOn = (transport === "email" ? email : chat) === both
          expect(sent.filter(({ kind }) => kind === "opened").map(({ at }) => (at - t0) / hour)).toEqual(
            isOn ? [0, 1, 2, 3, 4, 5] : []
          )
          expect(sent.filter(({ kind }) => kind === "resolved").length).toBe(isOn ? 6 : 0)
        }
      }
    }
  })
})
