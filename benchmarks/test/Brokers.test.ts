import { expect, it } from "vitest"
import type { StartedParty } from "../src/BrokerParties.ts"
import { brokerRows, type Found, waysOf } from "../src/Brokers.ts"
import type { Delivering } from "../src/Deliveries.ts"

const party = (type: string, batches: boolean, standIn: string | null = null): StartedParty => ({
  type,
  batches,
  standIn,
  config: { place: type }
})

const rate = (perSecond: number): Delivering => ({ perSecond, cpu: { gateway: 1, postgres: 2 }, p50: 900, p99: 999 })
const late = (p50: number, p99: number): Delivering => ({ ...rate(1), p50, p99 })
const found = (saturated: Array<Delivering>, offered: Array<Delivering>, fault: string | null = null): Found => ({
  saturated,
  offered,
  fault
})

it("The benchmark of brokers measures HTTP first, each type singly, and in batches if the type has them", () => {
  const ways = waysOf({ url: "u" }, [party("RABBITMQ", false), party("AWS_SQS", true, "moto")])
  expect(ways).toEqual([
    { name: "HTTP", type: "HTTP", config: { url: "u" } },
    { name: "RABBITMQ", type: "RABBITMQ", config: { place: "RABBITMQ" } },
    { name: "AWS_SQS (moto)", type: "AWS_SQS", config: { place: "AWS_SQS" } },
    { name: "AWS_SQS (moto), in batches", type: "AWS_SQS", config: { place: "AWS_SQS", batch: {} } }
  ])
})

it("The table of brokers has the rate of saturation and the latency of the low rate, beside HTTP of the same rounds", () => {
  const rows = brokerRows(
    100,
    new Map([
      ["HTTP", found([rate(1_000), rate(2_000), rate(4_000)], [late(1, 2), late(1, 2), late(1, 2)])],
      ["KAFKA", found([rate(500), rate(1_000), rate(2_000)], [late(2, 8), late(2, 8), late(2, 8)])]
    ]),
    new Map()
  )
  const ratios = Object.fromEntries(rows.map(({ gateway, measure, ratio }) => [measure, [gateway, ratio?.median]]))
  expect(ratios["KAFKA: rate"]).toEqual([1_000, 0.5])
  expect(ratios["KAFKA: event to answer, p50"]).toEqual([2, 2])
  expect(ratios["KAFKA: event to answer, p99"]).toEqual([8, 4])
  expect(ratios["KAFKA: CPU for 1,000 events, PostgreSQL"]).toEqual([2, 1])
})

it("The table of brokers says which destination failed and which broker is missing, and only a failure fails the run", () => {
  const rows = brokerRows(
    100,
    new Map([
      ["HTTP", found([rate(1)], [late(1, 1)])],
      ["SMTP", found([], [], "AUTH_REJECTED")]
    ]),
    new Map([["KAFKA", "KAFKA_HOME is not set"]])
  )
  const verdicts = rows.map(({ holds, measure }) => [measure, holds])
  expect(verdicts).toContainEqual(["SMTP: AUTH_REJECTED", false])
  expect(verdicts).toContainEqual(["KAFKA: skipped, because KAFKA_HOME is not set", null])
  expect(rows.filter(({ holds }) => holds === false)).toHaveLength(1)
})
