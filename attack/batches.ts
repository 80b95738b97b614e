import { type Attack, crowd, post } from './attack.ts'

const connections = 2
const batch = JSON.stringify(
  Array.from({ length: 50 }, (_, id) => ({
    jsonrpc: '2.0',
    id,
    method: 'cell_list',
    params: { limit: 200 },
  })),
)
const request = post(Buffer.byteLength(batch), 'Connection: close') + batch

export const batches: Attack = {
  name: `${connections} connections send batches of 50 lists of 8 MiB, and read the answers`,
  run: async (target, over) => {
    let bytes = 0
    const answered = await crowd(target, connections, over, (socket) => {
      socket.on('data', (chunk) => {
        bytes += chunk.length
      })
      socket.write(request)
    })
    return `${answered} batches answered, ${Math.round(bytes / 1_048_576)} MiB`
  },
}
