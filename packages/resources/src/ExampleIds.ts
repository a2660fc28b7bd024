/**
 * The document's examples form one scenario, with the same ids wherever they appear. A test runs it on a gateway, with the
 * gateway's own ids.
 */
export const ids = {
  team: "tm_demo",
  user: "usr_01jgfjjz00abcdefghjkmnpqrs",
  source: "src_01kak1v8m0c3x9f2e7d5b4a6gh",
  destination: "des_01kak1w2n4d4y0g3f8e6c5b7hj",
  connection: "web_01kak1x7p8e5z1h4g9f7d6c8jk",
  transformation: "trs_01kak1y3q2f6a2j5h0g8e7d9km",
  filter: "flt_01kak1z4r5g7b3k6j1h9f8e0mn",
  providerAccount: "pac_01kak1zb17j9d5n8m3k1h0g2pq",
  action: "act_01kak1z6s6h8c4m7k2j0g9f1np",
  request: "req_01kak203r6g7b3k6j1h9f8e0mn",
  event: "evt_01kak203r6h8c4m7k2j0g9f1np",
  ignoredEvent: "ign_01kak203r6j9d5n8m3k1h0g2pq",
  attempt: "att_01kak204s0k0e6p9n4m2j1h3qr",
  eventData: "edt_01kak203r6g7b3k6j1h9f8e0mn",
  execution: "txe_01kak203r6m1f7q0p5n3k2j4rs",
  fixture: "fix_01kak29d27s6m2w5v0t8r7q9xy",
  share: "shr_0123456789abcdef01234567",
  shareToken: "rsh_0123456789abcdef0123456789abcdef0123456789abcdef",
  binToken: "pbn_0123456789abcdef0123456789abcdef0123456789abcdef",
  replay: "evt_01kak25zt4n2g8r1q6p4m3k5st",
  replayRequest: "req_01kak27b05q4j0t3s8r6p5n7vw",
  replayMessage: "rpl_01kak27b05q4j0t3s8r6p5n7vw",
  workflow: "wfl_01kak1z4r3g7b3k6j1h9f8e0mn",
  workflowRun: "wfr_01kak203r6v1f7q0p5n3k2j4rs",
  stepExecution: "wse_01kak203r6w2g8r1q6p4m3k5st",
  stepRetry: "wro_01kak27b05x4j0t3s8r6p5n7vw",
  itemSource: "src_01kak1v8m0d4y0g3f8e6c5b7hj",
  channelSubscription: "chn_01kak1v8m1d4y0g3f8e6c5b7hj",
  channelAlert: "cal_01jgfjjz00abcdefghjkmnpqrs",
  channelEvent: "cev_01kak1v8m2d4y0g3f8e6c5b7hj",
  sourceRun: "trun_01kak1v8m3d4y0g3f8e6c5b7hj",
  issue: "iss_01kak28c16s5k1v4t9s7q6p8wx",
  dataDeletion: "del_01kak28c16r5k1v4t9s7q6p8wx",
  bulkOperation: "bch_01kak28c16r5k1v4t9s7q6p8wx"
} as const

export const at = "2026-01-01T00:00:00.000Z"

/** The request of the scenario. */
export const headers = { "content-type": "application/json", "x-shop-signature": "sha256=4f2a" }
export const body = { type: "order.created", id: 1 }

/** The common members of every record. */
export const times = { created_at: at, updated_at: at }
