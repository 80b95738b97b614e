import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A proxy between a client and a service that cuts its connections when told to. */
type CuttingProxy = {
  readonly url: string
  /** Closes every connection after the bytes received so far; returns how many. */
  cut(): number
  /** Resolves when a later connection has carried this text to its client. */
  carried(text: string): Promise<void>
  /** Sets the target of later connections. */
  lead(to: string): void
  close(): Promise<void>
}

export async function cuttingProxy(url: string): Promise<CuttingProxy> {
  let target = new URL(url)
  const open = new Set<Socket>()
  const watched: { text: string; resolve: () => void }[] = []
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    open.add(near)
    let seen = ''
    near
      .on('error', () => far.destroy())
      .on('close', () => {
        open.delete(near)
        far.destroy()
      })
    far.on('error', () => near.destroy()).on('close', () => near.end())
    near.pipe(far)
    far.on('data', (chunk: Buffer) => {
      near.write(chunk)
      seen += chunk.toString('latin1')
      for (const one of watched) if (seen.includes(one.text)) one.resolve()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => {
      const cut = [...open]
      for (const near of cut) near.end()
      return cut.length
    },
    carried: (text) => new Promise((resolve) => watched.push({ text, resolve })),
    lead: (to) => {
      target = new URL(to)
    },
    close: async () => {
      for (const near of open) near.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
