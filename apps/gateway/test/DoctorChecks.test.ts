import { describe, expect, it } from "vitest"
import { connectionsPerProcess } from "@tidegate/storage/Database"
import { sizeOf, timeOf } from "../src/doctor/Check.ts"
import { judgeSkew } from "../src/doctor/checks/Clock.ts"
import { judgeConnections } from "../src/doctor/checks/Connections.ts"
import { judgeSpace } from "../src/doctor/checks/Disk.ts"
import { judgeSchema } from "../src/doctor/checks/Schema.ts"
import { judgeSettings, rules } from "../src/doctor/checks/ServerSettings.ts"

const gigabyte = 1024 ** 3

describe("Checks of the doctor", () => {
  it("Disk check warns below a tenth, and calls less than a gigabyte or no file entries wrong", () => {
    const verdict = (free: number, entries = 1) =>
      judgeSpace({ path: "/data", total: 100 * gigabyte, free: free * gigabyte, entries }).verdict
    expect([verdict(50), verdict(9), verdict(0.5), verdict(50, 0.001)]).toEqual(["fine", "notice", "wrong", "wrong"])
  })

  it("Clock check allows for the time of the question, in both directions", () => {
    const verdict = (ms: number, error: number) => judgeSkew({ ms, error }).verdict
    expect([verdict(400, 1), verdict(-900, 1), verdict(900, 600), verdict(6_000, 10), verdict(-60_000, 10)]).toEqual([
      "fine",
      "notice",
      "fine",
      "wrong",
      "wrong"
    ])
    expect(judgeSkew({ ms: -60_000, error: 10 }).says).toBe("this machine's clock is 60,000 ms ahead of the database's")
  })

  it("Connections check compares what the runners open with what the server allows", () => {
    const verdict = (allowed: number, open: number, runners: number) =>
      judgeConnections({ allowed, open, runners }).verdict
    expect(verdict(connectionsPerProcess, 3, 0)).toBe("fine")
    expect(verdict(connectionsPerProcess, 3, 2)).toBe("wrong")
    expect(verdict(connectionsPerProcess * 4, connectionsPerProcess * 4 - 1, 2)).toBe("notice")
  })

  it("Schema check calls a database without a schema wrong", () => {
    expect(judgeSchema({ present: 0, wanted: 7 }).verdict).toBe("wrong")
    expect(judgeSchema({ present: 7, wanted: 7 }).verdict).toBe("fine")
  })

  it("Settings check knows what each value costs, and passes over settings that a server does not have", () => {
    const good = rules.map(
      ({ name }) => [name, name.startsWith("default_") ? "off" : name.endsWith("_timeout") ? "0" : "on"] as const
    )
    const says = (...changed: ReadonlyArray<readonly [string, string]>) =>
      judgeSettings(new Map([...good, ...changed])).map(({ says, verdict }) => `${verdict} ${says}`)
    expect(says()).toEqual([])
    expect(judgeSettings(new Map())).toEqual([])
    expect(says(["synchronous_commit", "local"])).toEqual([])
    expect(says(["fsync", "off"], ["synchronous_commit", "off"], ["default_transaction_read_only", "on"])).toEqual([
      "wrong fsync is off: a crash of the server loses acknowledged requests and may destroy the database",
      "wrong synchronous_commit is off: a crash of the server loses requests that were acknowledged",
      "wrong new transactions cannot write (default_transaction_read_only)"
    ])
    expect(says(["transaction_timeout", "5s"])).toEqual([
      "notice transaction_timeout is 5s: migrations and retention may need longer"
    ])
  })

  it("Doctor prints sizes and times in the unit that people would use", () => {
    expect([0, 900, 1_536, 5 * gigabyte, 300 * gigabyte].map(sizeOf)).toEqual([
      "0 bytes",
      "900 bytes",
      "1.5 KB",
      "5.0 GB",
      "300 GB"
    ])
    expect([0, 90, 600, 7_200, 200_000].map(timeOf)).toEqual(["0 s", "90 s", "10 minutes", "2 hours", "2 days"])
  })
})
