import { passing } from "./BrokerSession.ts"
import { brokerSource, prefetching } from "./BrokerSource.ts"
import { ShortName } from "./RabbitMq.ts"
import { leadsToServer, serverAddress, serverConnection, serverSignIn } from "./Server.ts"
import { needed, setting } from "./Settings.ts"

/** Messages of a queue of RabbitMQ, by AMQP 0-9-1. */
export const rabbitMqSource = brokerSource({
  type: "RABBITMQ",
  name: "RabbitMQ",
  description: "A source whose requests are the messages of a queue of RabbitMQ.",
  settings: {
    ...serverAddress(5_671, "rabbit.example.com"),
    vhost: setting(ShortName("The virtual host"), "/"),
    queue: needed(ShortName("The queue, which exists already"), "the name of a queue"),
    prefetch: prefetching("Messages that the broker delivers before the first of them is stored"),
    ...serverConnection
  },
  auths: ["BASIC_AUTH"],
  leadsTo: leadsToServer,
  protocol: "amqp",
  place: (settings, auth) => ({
    ...serverSignIn(settings, auth),
    vhost: settings.vhost,
    queue: settings.queue,
    prefetch: settings.prefetch
  }),
  meanings: {
    "320": passing("the broker has closed the connection"),
    "402": passing("there is no such virtual host"),
    "403": passing("the broker does not let the source in, or not to this queue"),
    "404": passing("there is no such queue"),
    "405": passing("another consumer has the queue for itself"),
    "406": passing("the broker has closed the channel"),
    "530": passing("the virtual host is not there, or the user may not use it"),
    CANCELLED: passing("the broker has ended the subscription, for example because the queue was deleted")
  },
  example: {
    subscription: { host: "rabbit.example.com", vhost: "shop", queue: "orders" },
    auth: { username: "tidegate", password: "a-password" }
  }
})
