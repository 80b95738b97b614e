import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { onTestFinished } from 'vitest'

const askMs = 100

/**
 * A balancer as in production: requests and upgrades go to the nodes whose `/health/serving` says yes, one after the
 * other. It repeats nothing and cuts no connection of a node that says no.
 */
export async function balancer(): Promise<{ url: string; nodes: Set<string>; isUp(node: string): boolean }> {
  const nodes = new Set<string>()
  const up = new Set<string>()
  const agent = new Agent({ keepAlive: true })
  let turn = 0
  const next = (): URL => new URL([...up].filter((node) => nodes.has(node))[turn++ % up.size] as string)
  const server = createServer((incoming, response) => {
    const { hostname, port } = next()
    const { method, url: path, headers } = incoming
    const outgoing = request({ hostname, port, method, path, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode as number, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.writeHead(502).end())
    incoming.pipe(outgoing)
  })
  server.on('upgrade', (incoming, near, head) => {
    const { hostname, port } = next()
    const far = connect(Number(port), hostname)
    const lines = incoming.rawHeaders.flatMap((text, at, all) =>
      at % 2 === 0 ? [`${text}: ${all[at + 1]}`] : [],
    )
    far.write(`GET ${incoming.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    far.write(head)
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  let isOver = false
  const watch = (async () => {
    while (!isOver) {
      for (const node of nodes) {
        const isUp = await fetch(`${node}/health/serving`).then(
          ({ ok }) => ok,
          () => false,
        )
        if (isUp) up.add(node)
        else up.delete(node)
      }
      for (const node of up) if (!nodes.has(node)) up.delete(node)
      await delay(askMs)
    }
  })()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    isOver = true
    await watch
    server.close()
    server.closeAllConnections()
    agent.destroy()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, nodes, isUp: (node) => up.has(node) }
}
