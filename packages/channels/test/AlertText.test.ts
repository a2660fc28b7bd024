import { describe, expect, it } from "vitest"
import { chatBody, maskedAddress, messageText, type ToldAlert } from "../src/alerts/AlertText.ts"

const at = Date.UTC(2026, 0, 1, 8, 30)

const alert = (fields: Partial<ToldAlert> = {}): ToldAlert => ({
  kind: "opened",
  code: "channel_renewal_failed",
  source_name: "Team calendar",
  message: "The provider answers 503",
  occurrences: 3,
  first_seen_at: at,
  resolved_at: null,
  ...fields
})

describe("Text of a message about alerts", () => {
  it("A message names the source, what is wrong and since when", () => {
    expect(messageText([alert()], 3_000)).toEqual({
      subject: "Renewal failed: Team calendar",
      text: "Renewal failed: Team calendar\nThe provider answers 503 (since 2026-01-01 08:30 UTC, 3 times)"
    })
    const resolved = alert({ kind: "resolved", resolved_at: at + 3_600_000 })
    expect(
      messageText([alert({ kind: "reminder", code: "channel_new_code", occurrences: 1 }), resolved], 3_000)
    ).toEqual({
      subject: "2 alerts of channels",
      text: "Still active: channel_new_code: Team calendar\nThe provider answers 503 (since 2026-01-01 08:30 UTC)\n\nResolved: Renewal failed: Team calendar\nsince 2026-01-01 08:30 UTC, until 2026-01-01 09:30 UTC"
    })
  })

  it("A message has no line breaks of others, and alerts that do not fit are counted", () => {
    const hostile = messageText([alert({ source_name: "a\r\nBcc: x@example.com\u2028" })], 3_000)
    expect(hostile.subject).toBe("Renewal failed: a Bcc: x@example.com")
    const many = Array.from({ length: 50 }, (_, n) => alert({ source_name: `s${n}`, message: "x".repeat(1_000) }))
    const { text } = messageText(many, 3_000)
    expect(text.length).toBeLessThanOrEqual(3_000)
    expect(text).toMatch(/and 4\d more$/)
    expect(messageText([alert()], 20).text.length).toBeLessThanOrEqual(20)
  })

  it("Chat webhooks get a text in which nothing is mark-up, and Discord gets a content that calls nobody", () => {
    const called = [alert({ source_name: "<!channel> & @everyone" })]
    const { text } = JSON.parse(chatBody(new URL("https://hooks.slack.com/services/x"), called))
    expect(text).toContain("&lt;!channel&gt; &amp; @everyone")
    const body = JSON.parse(chatBody(new URL("https://discord.com/api/webhooks/1/x"), called))
    expect(body).toEqual({ content: expect.stringContaining("<!channel>"), allowed_mentions: { parse: [] } })
    expect(JSON.parse(chatBody(new URL("https://discord.com/api/webhooks/1/x/slack"), called))).toEqual({ text })
    expect(JSON.parse(chatBody(new URL("https://notdiscord.com/x"), called))).toEqual({ text })
    const long = Array.from({ length: 30 }, () => alert({ source_name: "&".repeat(120), message: "<".repeat(400) }))
    expect(JSON.parse(chatBody(new URL("https://chat.example.com"), long)).text.length).toBeLessThanOrEqual(3_000)
    expect(JSON.parse(chatBody(new URL("https://discord.com/x"), long)).content.length).toBeLessThanOrEqual(2_000)
  })

  it("Addresses are masked", () => {
    expect(["ada@example.com", "a@b@example.com", "none", "@x"].map(maskedAddress)).toEqual([
      "a***@example.com",
      "a***@example.com",
      "***",
      "***"
    ])
  })
})
