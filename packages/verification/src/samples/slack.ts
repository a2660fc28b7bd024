import type { Moment, Sample, Samples } from "./Sample.ts"

const stampOf = ({ seconds }: Moment): string => `${seconds}.000100`

const event = (type: string, inner: (now: Moment) => ReturnType<Sample["body"]>): Sample => ({
  event: type,
  body: (now) => ({
    token: "a-retired-token",
    team_id: "T061EG9R6",
    api_app_id: "A0FFV41KK",
    event: { type: type.split(".", 1)[0]!, ...inner(now), event_ts: stampOf(now) },
    type: "event_callback",
    event_id: `Ev${now.id(9).toUpperCase()}`,
    event_time: now.seconds,
    authorizations: [
      { enterprise_id: null, team_id: "T061EG9R6", user_id: "U0LAN0Z89", is_bot: true, is_enterprise_install: false }
    ],
    is_ext_shared_channel: false
  })
})

export const slack: Samples = {
  type: "SLACK",
  documentation: "https://docs.slack.dev/reference/events",
  posts: "json",
  samples: [
    event("message.channels", (now) => ({
      channel: "C024BE91L",
      channel_type: "channel",
      user: "U2147483697",
      text: "Is there coffee?",
      ts: stampOf(now)
    })),
    event("app_mention", (now) => ({
      channel: "C024BE91L",
      user: "U061F7AUR",
      text: "<@U0LAN0Z89> is it everything a river should be?",
      ts: stampOf(now)
    })),
    event("reaction_added", (now) => ({
      user: "U024BE7LH",
      reaction: "thumbsup",
      item_user: "U0G9QF9C6",
      item: { type: "message", channel: "C024BE91L", ts: stampOf(now) }
    })),
    event("app_home_opened", () => ({ user: "U061F7AUR", channel: "D0LAN2Q65", tab: "home" }))
  ]
}
