/** A relay on BullMQ: a request is answered when its job is in Redis, and a worker delivers it. */
import { Queue, Worker } from "bullmq"
import { deliver, listen } from "./common.mjs"

const { hostname, password, port } = new URL(process.env.REDIS_URL)
const connection = {
  host: hostname,
  port: Number(port),
  password: decodeURIComponent(password),
  maxRetriesPerRequest: null
}
const queue = new Queue("relay", { connection })
const options = { attempts: 5, backoff: { type: "exponential", delay: 1_000 }, removeOnComplete: 1_000 }
const worker = new Worker("relay", ({ data }) => deliver(data), { connection, concurrency: 100 })
worker.on("error", (error) => console.error(error))
listen((body) => queue.add("deliver", body, options))
