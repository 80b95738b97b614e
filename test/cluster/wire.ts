import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** A proxy between the nodes and one database server: what it cuts, holds or drops is lost on the way. */
export type Wire = {
  address: { host: string; port: number }
  /** The address as `host:port`. */
  host: string
  cut(): void
  /** While true, nobody gets through. */
  block(is: boolean): void
  /** While true, nothing from the server arrives; the other direction works. */
  mute(is: boolean): void
  delay(ms: number): void
  /** Lets the server receive this many more COMMITs, and cuts their connections before the answers get back. */
  swallow(commits: number): void
  close(): Promise<void>
}

export async function wireTo(socket: string): Promise<Wire> {
  const ends = new Set<Socket>()
  const now = { isMute: false, isBlocked: false, delayMs: 0, swallow: 0 }
  /** Keeps the order when the delay ends, so that no query gets the rows of another. */
  const inOrder = (): ((act: () => void) => void) => {
    let last = Promise.resolve()
    return (act) => {
      const due = performance.now() + now.delayMs
      last = last.then(async () => {
        const wait = due - performance.now()
        if (wait > 0) await delay(wait)
        act()
      })
    }
  }
  const server = createServer((near) => {
    if (now.isBlocked) return near.destroy()
    const far = connect(socket)
    let isDoomed = false
    const [there, back] = [inOrder(), inOrder()]
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      ends.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        ends.delete(one)
        other.destroy()
      })
    }
    near.on('data', (chunk: Buffer) => {
      if (now.swallow > 0 && /commit\0/i.test(chunk.toString('latin1'))) {
        now.swallow -= 1
        isDoomed = true
      }
      there(() => far.write(chunk))
    })
    far.on('data', (chunk: Buffer) => {
      if (isDoomed) near.destroy()
      else if (!now.isMute) back(() => near.write(chunk))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const end of ends) end.destroy()
  }
  const { port } = server.address() as AddressInfo
  return {
    address: { host: '127.0.0.1', port },
    host: `127.0.0.1:${port}`,
    cut,
    block: (is) => {
      now.isBlocked = is
      if (is) cut()
    },
    // Answers were dropped, so later ones on these connections would be taken for answers to earlier queries.
    mute: (is) => {
      if (!is && now.isMute) cut()
      now.isMute = is
    },
    delay: (ms) => {
      now.delayMs = ms
    },
    swallow: (commits) => {
      now.swallow = commits
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      cut()
      await closed
    },
  }
}
