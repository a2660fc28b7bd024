import { CreateBucketCommand, GetObjectCommand, HeadBucketCommand, S3Client } from "@aws-sdk/client-s3"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { mkdtemp, rm } from "node:fs/promises"
import { describe, expect } from "vitest"
import type { Config } from "@tidegate/connectors/Settings"
import { it as base } from "../support/it.ts"
import { configOf } from "../support/Mocks.ts"
import { startSwift, swiftIsMissing, swiftKey, swiftRegion } from "../support/Swift.ts"

/** The types that store objects, with a real store that checks every signature: where it is installed. */

const isRequired = process.env["REQUIRE_SWIFT"] === "1"
if (swiftIsMissing !== null) console.warn(`the object store's suite is left out: ${swiftIsMissing}`)

const bucket = "webhook-archive"

const it = base
  .extend("swift", { scope: "file" }, async ({}, { onCleanup }) => {
    const folder = await mkdtemp(join(tmpdir(), "swift-"))
    const swift = await startSwift(folder)
    onCleanup(async () => {
      await swift.close()
      await rm(folder, { recursive: true, force: true })
    })
    return swift
  })
  .extend("client", { scope: "file" }, async ({ swift }) => {
    const client = new S3Client({
      region: swiftRegion,
      endpoint: swift.origin,
      forcePathStyle: true,
      credentials: swiftKey,
      requestChecksumCalculation: "WHEN_REQUIRED"
    })
    await client.send(new CreateBucketCommand({ Bucket: bucket }))
    return client
  })
  /** The first attempt at storing an event. */
  .extend(
    "stored",
    ({ client, gateway, swift }) =>
      async (payload: object, config: Config = {}, auth: Config = {}, type = "OBJECT_STORE_S") => {
        await client.send(new HeadBucketCommand({ Bucket: bucket }))
        const where: Config =
          type === "OBJECT_STORE_S" ? { region: swiftRegion, force_path_style: true } : { account_id: "a" }
        const key: Config = {
          access_key_id: swiftKey.accessKeyId,
          secret_access_key: swiftKey.secretAccessKey
        }
        const written = configOf(type, {
          config: { ...where, endpoint: swift.origin, bucket, ...config },
          auth_type: `${type}_ACCESS_KEY`,
          auth: { ...key, ...auth }
        })
        const destination = await gateway.destination(written, type)
        const source = await gateway.source()
        await gateway.connection(source, destination)
        const answer = await fetch(`${gateway.origin}/e/${source.id}`, {
          method: "POST",
          body: JSON.stringify(payload)
        })
        const { request_id } = (await answer.json()) as { readonly request_id: string }
        return gateway.eventually("the attempt", async () => {
          const { attempts, events } = await gateway.traced(request_id)
          const [event] = events
          return attempts.length > 0 && event?.attempts === 1 ? { attempt: attempts[0]!, event } : null
        })
      }
  )

describe.skipIf(swiftIsMissing !== null && !isRequired)("Swift", () => {
  it("Swift stores an event that the vendor's client reads", async ({ client, stored }) => {
    const { attempt, event } = await stored({ id: 7, text: "ü" })
    expect([attempt.error_code, attempt.response_status, event.status]).toEqual([null, 200, "SUCCESSFUL"])
    const Key = `archives/${event.team_id}/${event.source_id}/${event.id}.json`
    const object = await client.send(new GetObjectCommand({ Bucket: bucket, Key }))
    expect(object.ContentType).toBe("application/json")
    expect(object.Metadata).toMatchObject({ "event-id": event.id, "source-id": event.source_id })
    expect(JSON.parse((await object.Body?.transformToString()) ?? "")).toMatchObject({
      event_id: event.id,
      payload: { id: 7, text: "ü" }
    })
  })

  it("Swift stores objects under keys that are difficult to sign", async ({ client, stored }) => {
    for (const key of ["te am/(ü)+%/é!'*_1.json", "%2e%2e/x", "a?b#c&d=e;f", "日本/😀", "~._-"]) {
      const { attempt } = await stored({ key }, { key_template: "{{payload.key}}", include_metadata: false })
      expect([key, attempt.error_code, attempt.response_status]).toEqual([key, null, 200])
      const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
      expect(await Body?.transformToString()).toBe(JSON.stringify({ key }))
    }
  })

  it("Swift stores a large payload byte for byte", async ({ client, stored }) => {
    const payload = { text: "x".repeat(9 * 1024 * 1024) }
    const { attempt } = await stored(payload, { key_template: "large", include_metadata: false })
    expect([attempt.error_code, attempt.response_status]).toEqual([null, 200])
    const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: "large" }))
    expect(await Body?.transformToString()).toBe(JSON.stringify(payload))
  })

  it("Errors of Swift state the cause in plain words", async ({ stored }) => {
    const wrongSecret = await stored({}, {}, { secret_access_key: "another" })
    expect([wrongSecret.event.error_code, wrongSecret.event.failure_message]).toEqual([
      "AUTH_REJECTED",
      expect.stringContaining("SignatureDoesNotMatch")
    ])
    const stranger = await stored({}, {}, { access_key_id: "test:nobody" })
    expect(stranger.event.error_code).toBe("AUTH_REJECTED")
    const noBucket = await stored({}, { bucket: "no-such-bucket" })
    expect([noBucket.event.error_code, noBucket.event.failure_message]).toEqual([
      "BAD_RESPONSE",
      expect.stringContaining("NoSuchBucket")
    ])
    // It signs for the region `auto`, which is none of this store's.
    const elsewhere = await stored({}, {}, {}, "OBJECT_STORE_R")
    expect([elsewhere.event.error_code, elsewhere.event.failure_message]).toEqual([
      "BAD_RESPONSE",
      expect.stringMatching(/the bucket is elsewhere, in region us-east-1/)
    ])
  })
})
