import { GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3"
import { expect } from "vitest"
import { slack } from "../../packages/connectors/test/oracles/Slack.ts"
import { startStore, storeKey } from "../../packages/connectors/test/StoreServer.ts"
import { it as base } from "../support/it.ts"
import { blocksOf, shellIn } from "../support/Page.ts"
import { standingIn } from "../support/Mocks.ts"
import { Target } from "../support/Target.ts"
import { patience } from "../support/Waiting.ts"

/**
 * `docs/destinations/object-stores.md` and `chat.md`, word for word, as somebody reads them who has a gateway, a store and a channel. In
 * their places are a store that checks every signature and a server that keeps what it is sent, each tried by the vendor's own client first.
 */

const bucket = "webhook-archive"

const it = base
  .extend("chat", { scope: "file" }, async ({}, { onCleanup }) => {
    const chat = await Target.start((response, { url }) => {
      const said = url.startsWith("/api/chat.") ? slack.accepted.body : { ok: true, result: { message_id: 1 }, id: "1" }
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(said))
    })
    onCleanup(() => chat.close())
    return chat
  })
  .extend("store", { scope: "file" }, async ({}, { onCleanup }) => {
    const store = await startStore([bucket])
    onCleanup(() => store.close())
    return store
  })
  .extend("settings", { scope: "file" }, ({ chat }) => standingIn(chat.origin))
  /** Runs all commands of a page. Answers what the last of them says. */
  .extend(
    "follow",
    ({ gateway, place }) =>
      async (page: string, variables: Readonly<Record<string, string>>): Promise<string> => {
        const shell = await shellIn(gateway, place.folder, variables)
        const blocks = await blocksOf(page, ["sh"])
        const mark = "what the last command says:"
        const before = blocks.slice(0, -1).map(({ code }) => code)
        const out = await shell([...before, `echo '${mark}'\n`, blocks.at(-1)!.code].join(""))
        return out.slice(out.indexOf(mark) + mark.length + 1)
      }
  )
  /** All that the gateway shows of its destinations, and has logged. */
  .extend(
    "text",
    ({ gateway }) =>
      async (): Promise<string> =>
        JSON.stringify((await gateway.call("GET", "/destinations")).body) + (await gateway.logged())
  )

it("The storage page leads to an object in a bucket", { timeout: 4 * patience }, async ({ follow, store, text }) => {
  const client = new S3Client({
    region: store.region,
    endpoint: store.origin,
    forcePathStyle: true,
    credentials: storeKey,
    requestChecksumCalculation: "WHEN_REQUIRED"
  })
  await client.send(new PutObjectCommand({ Bucket: bucket, Key: "first", Body: "by the vendor's client" }))
  const read = await follow("destinations/object-stores.md", {
    AWS_ENDPOINT_URL: store.origin,
    AWS_REGION: store.region,
    AWS_ACCESS_KEY_ID: storeKey.accessKeyId,
    AWS_SECRET_ACCESS_KEY: storeKey.secretAccessKey,
    BUCKET: bucket
  })
  const at = [...store.objects.keys()].find((key) => !key.endsWith("/first"))
  expect(at).toMatch(/^webhook-archive\/orders\/evt_\w+\.json$/)
  expect(JSON.parse(read)).toMatchObject({ payload: { order: 7, amount: 12.5 } })
  const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: at!.slice(bucket.length + 1) }))
  expect(await Body?.transformToString()).toBe(read)
  expect(await text()).toContain(storeKey.accessKeyId)
  expect(await text()).not.toContain(storeKey.secretAccessKey)
})

it("The chat page leads to messages in three chats", { timeout: 4 * patience }, async ({ chat, follow, text }) => {
  await slack.call(chat.origin)
  slack.meaning(chat.received[0]!)
  chat.reset()
  const secrets = { BOT_TOKEN: "xoxb-of-a-bot", TELEGRAM_TOKEN: "123456:of-another-bot" }
  await follow("destinations/chat.md", {
    ...secrets,
    CHANNEL: "C0123456789",
    WEBHOOK_URL: `${chat.origin}/api/v10/webhooks/1234/t0ken-of-a-webhook`,
    CHAT_ID: "-1001234567890"
  })
  const [inChannel, byWebhook, inChat, ...others] = chat.received
  expect(others).toEqual([])
  expect(slack.meaning(inChannel!)).toMatchObject({
    authorization: `Bearer ${secrets.BOT_TOKEN}`,
    channel: "C0123456789",
    text: "Order 7 has arrived"
  })
  expect([byWebhook!.method, byWebhook!.url.split("?")[0]]).toEqual([
    "POST",
    "/api/v10/webhooks/1234/t0ken-of-a-webhook"
  ])
  expect(JSON.parse(byWebhook!.body.toString())).toMatchObject({ content: "The disk is full" })
  expect([inChat!.method, inChat!.url]).toEqual(["POST", `/bot${secrets.TELEGRAM_TOKEN}/sendMessage`])
  expect(JSON.parse(inChat!.body.toString())).toMatchObject({
    chat_id: "-1001234567890",
    text: "Order 7 comes back"
  })
  const shown = await text()
  for (const secret of [...Object.values(secrets), "t0ken-of-a-webhook"]) expect(shown).not.toContain(secret)
})
