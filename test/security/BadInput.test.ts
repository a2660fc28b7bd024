import { describe, expect } from "vitest"
import { waitUntil } from "../support/Waiting.ts"
import { allTables, type TableState } from "../support/Gateway.ts"
import { Document } from "../contract/openapi/Document.ts"
import { request, talk } from "../support/RawHttp.ts"
import { type ControlCase, partsOf, type Present } from "./control/Case.ts"
import { wrongCredentials } from "./control/WrongCredentials.ts"
import { wrongJson, wrongTypes } from "./control/WrongJson.ts"
import { conflicts, wrongChanges, wrongMembers } from "./control/WrongMembers.ts"
import { slowPatterns, wrongRules } from "./control/WrongRules.ts"
import { wrongPaths, wrongQueries } from "./control/WrongTargets.ts"
import { wrongCode, wrongRuns } from "./control/WrongTransformations.ts"
import { type SourceName, sources, wrongRequests } from "./ingress/WrongRequests.ts"
import { wireCases } from "./WrongWire.ts"
import { ownIt as gatewayIt } from "../support/it.ts"
import { timesSlower } from "../support/LoopHeld.ts"
import { processorOf } from "../support/Watch.ts"

/** Whatever comes in is answered with what is wrong about it, and changes nothing. One gateway takes all of it. */

const controlCorpus: Readonly<Record<string, ReadonlyArray<ControlCase>>> = {
  "bodies that are not a JSON object": wrongJson,
  "content types": wrongTypes,
  "members with wrong values": wrongMembers,
  "partial changes": wrongChanges,
  "taken names and unknown ids": conflicts,
  rules: wrongRules,
  "code of transformations": wrongCode,
  "runs of transformations": wrongRuns,
  queries: wrongQueries,
  "paths, ids and methods": wrongPaths,
  credentials: wrongCredentials
}

/** All is there before the first test: what they are sent must change nothing of it. */
const it = gatewayIt
  /** The server behind what is present. */
  .extend("served", { scope: "file" }, ({ startTarget }) => startTarget())
  /** One of everything, with one delivered event. */
  .extend("present", { scope: "file", auto: true }, async ({ gateway, served }): Promise<Present> => {
    const source = await gateway.api("POST", "/sources", { name: "present" })
    const destination = await gateway.api("POST", "/destinations", {
      name: "present",
      config: { url: served.origin }
    })
    const connection = await gateway.api("POST", "/connections", {
      name: "present",
      source_id: source.id,
      destination_id: destination.id
    })
    const transformation = await gateway.api("POST", "/transformations", {
      name: "present",
      code: "addHandler('transform', (request) => request)"
    })
    const transforming = await gateway.api("POST", "/connections", {
      name: "transforming",
      source_id: source.id,
      destination_id: destination.id,
      rules: [{ type: "transform", transformation_id: transformation.id }]
    })
    await gateway.api("PUT", `/connections/${transforming.id}/disable`)
    await request(gateway.port, { path: `/e/${source.id}`, body: '{"a":1}' })
    await served.next()
    const attempt = await gateway.eventually(
      "an attempt",
      async () => (await gateway.api("GET", "/attempts")).models[0]
    )
    return {
      source: source.id,
      destination: destination.id,
      connection: connection.id,
      transformation: transformation.id,
      request: attempt.request_id,
      event: attempt.event_id,
      attempt: attempt.id
    }
  })
  .extend("ids", { scope: "file", auto: true }, async ({ gateway }): Promise<Record<SourceName, string>> => {
    const made: Partial<Record<SourceName, string>> = {}
    for (const [name, config] of Object.entries(sources)) {
      const { id } = await gateway.source(config)
      made[name as SourceName] = id
      if (name === "disabled") await gateway.api("PUT", `/sources/${id}/disable`)
      if (name === "deleted") await gateway.api("DELETE", `/sources/${id}`)
    }
    return made as Record<SourceName, string>
  })
  /** Sends what is not HTTP; the answer, if any, is the one expected and never a fault of the server's. */
  .extend("speak", ({ gateway }) => async (one: ReturnType<typeof wireCases>[number]): Promise<void> => {
    const { answers } = await talk(gateway.port, one.parts, {
      ...(one.cut === true ? { cut: true } : one.status === null ? {} : { answers: 1 }),
      ...(one.end === true ? { end: true } : {})
    })
    for (const { status } of answers) expect(status).toBeLessThan(500)
    if (one.status === null) return
    const { body, status } = answers.at(-1)!
    expect(status).toBe(one.status)
    expect(JSON.parse(body)).toEqual({
      error: expect.any(String),
      code: expect.stringMatching(/^[A-Z_]+$/),
      status,
      message: expect.any(String)
    })
  })

// In order: what has been sent is looked for at the end.
describe("Control API", { shuffle: false }, () => {
  let before: ReadonlyArray<TableState>
  let document: Document

  it.beforeAll(async ({ gateway }) => {
    document = await Document.of(gateway)
    await gateway.settled()
    before = await gateway.state()
  })

  for (const [area, cases] of Object.entries(controlCorpus)) {
    describe(area, () => {
      for (const one of cases) {
        it(`The control API refuses ${one.method}: ${one.name}`, async ({ gateway, present }) => {
          const answer = await request(gateway.port, partsOf(one, present, gateway.key))
          const shown = { status: answer.status, code: codeOf(answer.body) }
          expect(shown, answer.body.slice(0, 500)).toEqual({ status: one.status, code: one.code ?? shown.code })
          if (answer.body.startsWith("{")) {
            expect(document.failureFault(one.method, one.path, answer.status, JSON.parse(answer.body))).toBeNull()
          }
        })
      }
    })
  }

  describe("Malformed HTTP at the control API", () => {
    for (const [index, { name }] of wireCases("", "").entries()) {
      it(`Malformed HTTP at the control API causes no server error: ${name}`, ({ gateway, speak }) => {
        const head = `Authorization: Bearer ${gateway.key}\r\nContent-Type: application/json\r\n`
        return speak(wireCases("/v1/sources", head)[index]!)
      })
    }
  })

  it("The refused calls of the control API change nothing", async ({ gateway }) => {
    expect(await gateway.state()).toEqual(before)
  })

  it("The control API is tested with at least three hundred invalid calls", () => {
    expect(Object.values(controlCorpus).flat().length).toBeGreaterThanOrEqual(300)
  })
})

describe("Ingress URLs", { shuffle: false }, () => {
  /** What a rejected request adds to. */
  const unconcerned = allTables.filter((table) => table !== "requests" && table !== "rollups")
  let before: ReadonlyArray<TableState>

  it.beforeAll(async ({ gateway }) => {
    await gateway.settled()
    before = await gateway.state(unconcerned)
  })

  describe("Requests that ingress refuses", () => {
    for (const one of wrongRequests) {
      it(`Ingress refuses a request: ${one.name}`, async ({ gateway, ids }) => {
        const [newest] = await gateway.sql("select coalesce(max(id), '') as id from requests")
        const { final } = await talk(gateway.port, one.bytes(ids), { answers: 1 })
        const shown = { status: final.status, code: codeOf(final.body) }
        expect(shown, final.body.slice(0, 500)).toEqual({ status: one.status, code: one.code })
        const stored = await gateway.sql(
          "select source_id, status, rejection_cause, verified, events_count from requests where id > $1",
          [newest.id]
        )
        expect(stored).toEqual(
          one.stored === null
            ? []
            : [
                {
                  source_id: ids[one.stored.source],
                  status: "rejected",
                  rejection_cause: one.stored.cause,
                  verified: false,
                  events_count: 0
                }
              ]
        )
      })
    }
  })

  describe("Malformed HTTP at ingress URLs", () => {
    let requests: ReadonlyArray<TableState>
    it.beforeAll(async ({ gateway }) => {
      requests = await gateway.state(["requests"])
    })
    for (const [index, { name }] of wireCases("", "").entries()) {
      it(`Malformed HTTP at an ingress URL causes no server error: ${name}`, ({ ids, speak }) =>
        speak(wireCases(`/e/${ids.open}`, "Content-Type: application/json\r\n")[index]!))
    }
    it("Malformed HTTP at ingress URLs stores nothing", async ({ gateway }) => {
      expect(await gateway.state(["requests"])).toEqual(requests)
    })
  })

  it("The refused requests at ingress URLs change nothing else", async ({ gateway }) => {
    expect(await gateway.state(unconcerned)).toEqual(before)
  })

  it("Ingress URLs are tested with at least a hundred invalid requests", () => {
    expect(wrongRequests.length + wireCases("", "").length).toBeGreaterThanOrEqual(100)
  })
})

describe("Patterns that hang other engines", () => {
  for (const pattern of slowPatterns) {
    it(`The pattern ${pattern} is evaluated within a second of CPU time`, async ({ gateway, target }) => {
      const { source } = await gateway.route(target, {
        rules: [{ type: "filter", body: { text: { $regex: pattern } } }]
      })
      const before = processorOf(gateway.pid)
      const answer = await request(gateway.port, {
        path: `/e/${source.id}`,
        headers: [["Content-Type", "application/json"]],
        body: JSON.stringify({ text: `${"a".repeat(50_000)}!` })
      })
      expect(answer.status).toBe(200)
      // In seconds, of the gateway's own processor time: others may use the machine meanwhile.
      expect(processorOf(gateway.pid) - before).toBeLessThan(timesSlower())
    })
  }
})

it("The gateway still works after the invalid requests", async ({ gateway, present, served }) => {
  expect((await gateway.api("GET", "/sources?name=present")).count).toBe(1)
  expect((await request(gateway.port, { path: `/e/${present.source}`, body: "last" })).status).toBe(200)
  // One was delivered before.
  await waitUntil("the last request is delivered", () => served.received.some(({ body }) => String(body) === "last"))
})

const codeOf = (body: string): unknown => {
  try {
    const parsed: unknown = JSON.parse(body)
    return typeof parsed === "object" && parsed !== null && "code" in parsed ? parsed.code : null
  } catch {
    return null
  }
}
