import { describe, expect, it } from "@effect/vitest"
import type { Config } from "@tidegate/connectors/Settings"
import { pointsOf, shortened, shortenedPoints } from "../src/Cutting.ts"
import { event, opened, refusalOf, sent } from "./Opened.ts"

/** What the texts of chats become that their APIs would refuse: too long, empty, or escaped where nothing is. */

// oxlint-disable-next-line typescript/no-explicit-any -- JSON that a test looks into
type Made = Record<string, any>

describe("Text limits", () => {
  it("Cut text is counted in the target's units and never ends in half a character", () => {
    expect([pointsOf("a😀b"), "a😀b".length]).toEqual([3, 4])
    expect(pointsOf("\ud83d")).toBe(1)
    expect(shortenedPoints("😀😀😀", 3)).toBe("😀😀😀")
    expect(shortenedPoints("😀😀😀😀", 3)).toBe("😀😀…")
    expect(shortenedPoints("abc", 0)).toBe("")
    expect(shortened("😀😀😀", 6)).toBe("😀😀😀")
    expect(shortened("😀😀😀😀", 6)).toBe("😀😀…")
    expect(shortened("😀😀😀😀", 5).isWellFormed()).toBe(true)
  })
})

describe("CHAT_WEBHOOK texts", () => {
  const url = "https://discord.com/api/webhooks/1/t0ken-of-it"
  const made = (config: Config, payload: unknown) =>
    JSON.parse(sent(opened("CHAT_WEBHOOK", { url, ...config }), event(payload)).text) as Made
  const embeds = (layout: unknown): Config => ({ content_template: "", embeds: JSON.stringify(layout) })

  it("CHAT_WEBHOOK message may omit its text or its embeds, but not both", () => {
    expect(made(embeds({ title: "{{payload.a}}" }), { a: "x" })).toEqual({
      embeds: [{ title: "x" }],
      allowed_mentions: { parse: [] }
    })
    const both = { content_template: "{{payload.a}}", embeds: '{"title":"{{payload.b}}"}' }
    expect(made(both, { a: "x" })).toEqual({ content: "x", allowed_mentions: { parse: [] } })
    const empty = opened("CHAT_WEBHOOK", { url, ...both })
    expect(refusalOf(empty, event({})).message).toBe(
      "config.content_template and config.embeds make an empty message of this event"
    )
    expect(refusalOf(opened("CHAT_WEBHOOK", { url, content_template: "{{payload.a}}" }), event({})).message).toBe(
      "config.content_template makes an empty text of this event"
    )
  })

  it("CHAT_WEBHOOK message omits an empty name and picture", () => {
    const config = { content_template: "x", username: "{{payload.who}}", avatar_url: "{{payload.picture}}" }
    expect(made(config, {})).toEqual({ content: "x", allowed_mentions: { parse: [] } })
  })

  it("CHAT_WEBHOOK embed has its long texts cut and its empty texts replaced or omitted", () => {
    const long = "x".repeat(10_000)
    const { embeds: list } = made(
      embeds([
        {
          title: "{{payload.long}}",
          url: "{{payload.none}}",
          description: "{{payload.none}}",
          author: { name: "{{payload.none}}", icon_url: "https://example.com/a.png" },
          image: { url: "{{payload.none}}" },
          fields: [
            { name: "{{payload.long}}", value: "{{payload.none}}", inline: true },
            { name: "{{payload.none}}", value: "{{payload.long}}" }
          ],
          footer: { text: "{{payload.long}}" }
        },
        { title: "{{payload.none}}" }
      ]),
      { long }
    )
    expect(list).toEqual([
      {
        title: `${"x".repeat(255)}…`,
        fields: [
          { name: `${"x".repeat(255)}…`, value: "\u200b", inline: true },
          { name: "\u200b", value: `${"x".repeat(1_023)}…` }
        ],
        footer: { text: `${"x".repeat(2_047)}…` }
      }
    ])
  })

  it("CHAT_WEBHOOK message has at most 6,000 characters in all embeds and 25 fields per embed", () => {
    const long = "x".repeat(10_000)
    const fields = Array.from({ length: 30 }, () => ({ name: "n", value: "v" }))
    const { embeds: list } = made(
      embeds([{ description: "{{payload.long}}", fields }, { description: "{{payload.long}}" }]),
      {
        long
      }
    )
    expect(list[0].fields).toHaveLength(25)
    const lengths = [list[0].description.length, list[1].description.length]
    expect(lengths).toEqual([4_096, 6_000 - 4_096 - 50])
  })

  it("CHAT_WEBHOOK embed limit counts the placeholder of an empty field half", () => {
    const [long, short] = ["{{payload.long}}", "{{payload.short}}"]
    const fields = [
      { name: long, value: long },
      { name: long, value: short },
      { name: long, value: "{{payload.none}}" },
      { name: "one more", value: "of it" }
    ]
    const { embeds: list } = made(embeds({ description: long, fields }), {
      long: "x".repeat(5_000),
      short: "y".repeat(120)
    })
    const texts = list[0].fields.flatMap(({ name, value }: Made) => [name, value]) as ReadonlyArray<string>
    expect(texts.map(pointsOf)).toEqual([256, 1_024, 256, 120, 247, 1])
    expect(texts.reduce((sum, text) => sum + pointsOf(text), pointsOf(list[0].description))).toBe(6_000)
  })

  it("CHAT_WEBHOOK failure names the part of the message that was refused", () => {
    const errors = { embeds: { 0: { url: { _errors: [{ code: "URL_TYPE_INVALID_URL", message: "no" }] } } } }
    const body = Buffer.from(JSON.stringify({ code: 50035, message: "Invalid Form Body", errors }))
    const { judge } = opened("CHAT_WEBHOOK", { url })
    expect(judge({ status: 400, headers: {}, body, bodyTruncated: false })).toEqual({
      code: "BAD_RESPONSE",
      message: "HTTP 400 from the API (50035): embeds.0.url URL_TYPE_INVALID_URL",
      final: true
    })
  })
})

describe("CHAT_BOT texts", () => {
  const bot = (blocks: unknown) =>
    opened("CHAT_BOT", { channel: "C1", text_template: "t", blocks_template: JSON.stringify(blocks) })
  const laidOut = (blocks: unknown, payload: unknown) =>
    (JSON.parse(sent(bot(blocks), event(payload)).text) as { readonly blocks?: ReadonlyArray<Made> }).blocks

  it("CHAT_BOT message escapes values in texts but not in URLs and button values", () => {
    const link = "https://example.com/?a=1&b=<2>"
    const button = {
      type: "button",
      text: { type: "plain_text", text: "{{payload.link}}" },
      url: "{{payload.link}}",
      value: "{{payload.link}}",
      action_id: "go"
    }
    const [actions] = laidOut([{ type: "actions", elements: [button] }], { link })!
    expect(actions!["elements"][0]).toEqual({
      ...button,
      text: { type: "plain_text", text: "https://example.com/?a=1&amp;b=&lt;2&gt;" },
      url: link,
      value: link
    })
    const image = { type: "image", image_url: "{{payload.link}}", alt_text: "{{payload.link}}" }
    expect(laidOut([image], { link })).toEqual([{ type: "image", image_url: link, alt_text: link }])
  })

  it("CHAT_BOT message does not search texts for names unless its template says so", () => {
    const text = (more: object) => ({ type: "section", text: { type: "mrkdwn", text: "{{payload.a}}", ...more } })
    expect(laidOut([text({}), text({ verbatim: false })], { a: "@channel" })!.map((block) => block.text)).toEqual([
      { type: "mrkdwn", text: "@channel", verbatim: true },
      { type: "mrkdwn", text: "@channel", verbatim: false }
    ])
  })

  it("CHAT_BOT message cuts long texts outside escapes and replaces or omits empty texts", () => {
    const plain = (text: string) => ({ type: "plain_text", text })
    const blocks = laidOut(
      [
        { type: "header", text: plain("{{payload.long}}") },
        { type: "header", text: plain("{{payload.none}}") },
        { type: "section", text: { type: "mrkdwn", text: "{{payload.signs}}" } },
        { type: "section", text: { type: "mrkdwn", text: "{{payload.none}}" } },
        { type: "section", fields: [plain("{{payload.none}}"), plain("{{payload.long}}")] },
        { type: "context", elements: [plain("{{payload.none}}"), plain("x")] },
        { type: "context", elements: [plain("{{payload.none}}")] },
        { type: "actions", elements: [{ type: "button", text: plain("{{payload.none}}"), url: "{{payload.none}}" }] },
        { type: "image", image_url: "{{payload.none}}", alt_text: "x" },
        { type: "divider" }
      ],
      { long: "x".repeat(9_000), signs: "&".repeat(3_000) }
    )!
    expect(blocks.map(({ type }) => type)).toEqual(["header", "section", "section", "context", "actions", "divider"])
    expect(blocks[0]!.text.text).toBe(`${"x".repeat(149)}…`)
    expect(blocks[1]!.text.text).toMatch(/^(?:&amp;)+…$/)
    expect(blocks[1]!.text.text.length).toBeLessThanOrEqual(3_000)
    expect(blocks[2]!.fields.map((field: { text: string }) => field.text.length)).toEqual([1, 2_000])
    expect(blocks[3]!.elements).toEqual([plain("x")])
    expect(blocks[4]!.elements).toEqual([{ type: "button", text: plain("—") }])
  })

  it("CHAT_BOT message counts an emoji as one character and never splits it", () => {
    const texts = (faces: number) => {
      const header = { type: "header", text: { type: "plain_text", text: "{{payload.faces}}" } }
      const image = { type: "image", image_url: "https://example.com/a.png", alt_text: "{{payload.faces}}" }
      const config = {
        channel: "C1",
        text_template: "{{payload.faces}}",
        blocks_template: JSON.stringify([header, image])
      }
      const made = JSON.parse(sent(opened("CHAT_BOT", config), event({ faces: "😀".repeat(faces) })).text) as Made
      return [made["text"], made["blocks"][0].text.text, made["blocks"][1].alt_text] as ReadonlyArray<string>
    }
    expect(texts(150)).toEqual(["😀".repeat(150), "😀".repeat(150), "😀".repeat(150)])
    expect(texts(40_001)).toEqual([`${"😀".repeat(39_999)}…`, `${"😀".repeat(149)}…`, `${"😀".repeat(1_999)}…`])
  })

  it("CHAT_BOT message cuts each text and list to the limit of its block or element", () => {
    const long = "{{payload.long}}"
    const plain = { type: "plain_text", text: long }
    const option = { text: plain, description: plain, value: long, url: "https://example.com/" }
    const many = (count: number, one: object) => Array.from({ length: count }, () => one)
    const element = (type: string, more: object) => ({ type: "actions", elements: [{ type, ...more }] })
    const [actions, overflow, radio, select, groups, feedback, card, container, video, input, alert] = laidOut(
      [
        element("button", { text: plain, value: long, accessibility_label: long, action_id: "{{payload.none}}" }),
        element("overflow", { options: many(6, option) }),
        element("radio_buttons", { options: many(11, option) }),
        element("static_select", {
          placeholder: plain,
          options: many(101, { text: { type: "plain_text", text: "x" }, value: "x" })
        }),
        element("static_select", {
          option_groups: [{ label: plain, options: many(101, { text: { type: "plain_text", text: "x" }, value: "x" }) }]
        }),
        { type: "context_actions", elements: many(6, { type: "feedback_buttons", positive_button: { text: plain } }) },
        { type: "card", title: plain, subtitle: plain, body: plain, actions: many(4, { type: "button", text: plain }) },
        { type: "container", title: plain, child_blocks: many(11, { type: "divider" }) },
        { type: "video", title: plain, alt_text: long, author_name: long, video_url: "https://example.com/" },
        { type: "input", block_id: "{{payload.none}}", label: plain, hint: plain },
        { type: "alert", text: plain }
      ],
      { long: "x".repeat(2_500) }
    )!
    const { accessibility_label, action_id, text, value } = actions!["elements"][0]
    expect([text.text.length, value.length, accessibility_label.length, action_id]).toEqual([75, 2_000, 75, undefined])
    const options = [overflow, radio, select].map((block) => block!["elements"][0].options)
    expect(options.map(({ length }) => length)).toEqual([5, 10, 100])
    const [first] = options[0]
    expect([first.text.text.length, first.description.text.length, first.value.length]).toEqual([75, 75, 150])
    expect(select!["elements"][0].placeholder.text).toHaveLength(150)
    const [group] = groups!["elements"][0].option_groups
    expect([group.label.text.length, group.options.length]).toEqual([75, 100])
    expect([feedback!["elements"].length, feedback!["elements"][0].positive_button.text.text.length]).toEqual([5, 75])
    expect([card!["title"], card!["subtitle"], card!["body"]].map((one) => one.text.length)).toEqual([150, 150, 200])
    expect([card!["actions"].length, container!["title"].text.length, container!["child_blocks"].length]).toEqual([
      3, 150, 10
    ])
    expect([video!["title"].text.length, video!["alt_text"].length, video!["author_name"].length]).toEqual([
      200, 2_000, 50
    ])
    expect([input!["block_id"], input!["label"].text.length, input!["hint"].text.length]).toEqual([
      undefined,
      2_000,
      2_000
    ])
    expect(alert!["text"].text).toHaveLength(200)
  })

  it("CHAT_BOT message has at most 12,000 characters in all Markdown blocks", () => {
    const markdown = { type: "markdown", text: "{{payload.long}}" }
    const blocks = laidOut([markdown, markdown, markdown], { long: "x".repeat(7_000) })!
    expect(blocks.map(({ text }) => text.length)).toEqual([7_000, 5_000])
  })

  it("CHAT_BOT message keeps values in rich texts and tables unescaped and leaves none empty", () => {
    const link = "https://example.com/?a=1&b=<2>"
    const text = (written: string) => ({ type: "text", text: written })
    const section = (...elements: ReadonlyArray<object>) => ({ type: "rich_text_section", elements })
    const [rich, table] = laidOut(
      [
        {
          type: "rich_text",
          elements: [
            section(text("{{payload.link}}"), text("{{payload.none}}"), { type: "link", url: "{{payload.link}}" }),
            section({ type: "link", url: "{{payload.none}}", text: "more" }),
            section(text("{{payload.none}}"))
          ]
        },
        {
          type: "table",
          rows: [
            [
              { type: "raw_text", text: "{{payload.link}}" },
              { type: "raw_text", text: "{{payload.none}}" }
            ]
          ]
        }
      ],
      { link }
    )!
    expect(rich!["elements"]).toEqual([
      section(text(link), { type: "link", url: link }),
      section(text("more")),
      section(text("—"))
    ])
    expect(table!["rows"]).toEqual([
      [
        { type: "raw_text", text: link },
        { type: "raw_text", text: "—" }
      ]
    ])
  })

  it("CHAT_BOT message is sent without empty blocks, and a too long URL is refused", () => {
    expect(laidOut([{ type: "section", text: { type: "mrkdwn", text: "{{payload.none}}" } }], {})).toBeUndefined()
    const image = [{ type: "image", image_url: "https://example.com/{{payload.a}}", alt_text: "x" }]
    expect(refusalOf(bot(image), event({ a: "x".repeat(3_000) })).message).toBe(
      "config.blocks_template makes a URL of more than 3000 characters of this event"
    )
  })

  it("CHAT_BOT failure names the part of the blocks that was refused", () => {
    const messages = ["[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]"]
    const body = Buffer.from(JSON.stringify({ ok: false, error: "invalid_blocks", response_metadata: { messages } }))
    expect(bot([]).judge({ status: 200, headers: {}, body, bodyTruncated: false })).toEqual({
      code: "BAD_RESPONSE",
      message:
        "the API has refused the call (invalid_blocks): must be less than 3001 characters [json-pointer:/blocks/0/text/text]",
      final: true
    })
  })
})

describe("MESSENGER_MESSAGE texts", () => {
  const textOf = (config: Config, payload: unknown): string =>
    (
      JSON.parse(sent(opened("MESSENGER_MESSAGE", { chat_id: "1", ...config }), event(payload)).text) as {
        text: string
      }
    ).text

  it("MESSENGER_MESSAGE plain text is cut by characters", () => {
    const config = { text_template: "{{payload.a}}" }
    expect(textOf(config, { a: "😀".repeat(4_096) })).toBe("😀".repeat(4_096))
    expect(textOf(config, { a: "😀".repeat(4_097) })).toBe(`${"😀".repeat(4_095)}…`)
  })

  it("MESSENGER_MESSAGE text with markup has its values cut so that the markup stays valid", () => {
    const html = textOf(
      { parse_mode: "HTML", text_template: "<b>{{payload.a}}</b> <i>{{payload.b}}</i>" },
      { a: "<".repeat(9_000), b: "short" }
    )
    expect(html).toMatch(/^<b>(?:&lt;)+…<\/b> <i>short<\/i>$/)
    // As the API counts, once the marks are taken for what they are.
    expect(html.replaceAll(/<[^>]*>/g, "").replaceAll("&lt;", "<")).toHaveLength(4_096)
    const markdown = textOf({ parse_mode: "MarkdownV2", text_template: "*{{payload.a}}*" }, { a: "!".repeat(9_000) })
    expect(markdown).toMatch(/^\*(?:\\!)+…\*$/)
  })

  it("MESSENGER_MESSAGE template that is too long by itself is refused", () => {
    const sender = opened("MESSENGER_MESSAGE", {
      chat_id: "1",
      parse_mode: "HTML",
      text_template: `${"x".repeat(4_097)}{{payload.a}}`
    })
    expect(refusalOf(sender, event({ a: "1" })).message).toBe(
      "config.text_template makes more than 4096 characters of this event"
    )
  })

  it("MESSENGER_MESSAGE failure gives the API's reason unless it quotes the message", () => {
    const { judge } = opened("MESSENGER_MESSAGE", { chat_id: "1", text_template: "x" })
    const said = (description: string) => {
      const body = Buffer.from(JSON.stringify({ ok: false, error_code: 400, description }))
      const verdict = judge({ status: 400, headers: {}, body, bodyTruncated: false })
      return verdict === "successful" ? verdict : verdict.message
    }
    expect(said("Bad Request: message is too long")).toBe(
      "HTTP 400 from the API (400): Bad Request: message is too long"
    )
    expect(said('Bad Request: can\'t parse entities: unsupported start tag "secret"')).toBe(
      "HTTP 400 from the API (400)"
    )
  })
})
