import { Box } from '@mantine/core';
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts';
import { type UnitName, units } from './units.ts';

export interface GroupValue {
  readonly name: string;
  readonly value: number;
}

const rowHeight = 34;
const namesWidth = 150;
const fontSize = 12;

let canvas: CanvasRenderingContext2D | null | undefined;

/** The beginning of a name that fits beside the bars: a chart would cut its beginning off. */
function fitting(name: string): string {
  canvas ??= document.createElement('canvas').getContext('2d');
  if (canvas === null) return name;
  canvas.font = `${fontSize}px ${getComputedStyle(document.body).fontFamily}`;
  const letters = [...name];
  const shown = (count: number): string => (count < letters.length ? `${letters.slice(0, count).join('')}…` : name);
  let count = letters.length;
  // Names may be as long as a request allows.
  if (count > namesWidth) count = namesWidth;
  while (count > 1 && canvas.measureText(shown(count)).width > namesWidth - 2 * fontSize) count -= 1;
  return shown(count);
}

/** A bar per group, largest first. The table beside it contains the same as text. */
export function GroupChart({ label, groups, unit }: { label: string; groups: readonly GroupValue[]; unit: UnitName }) {
  const { format, axis } = units[unit];
  const { ticks, format: formatTick } = axis(groups.reduce((max, { value }) => Math.max(max, value), 0));
  const height = groups.length * rowHeight + 40;
  return (
    <Box role="img" aria-label={`Chart: ${label}`} h={height}>
      <ResponsiveContainer width="100%" height={height}>
        <BarChart
          data={[...groups]}
          layout="vertical"
          margin={{ top: 4, right: 16, bottom: 0, left: 0 }}
          accessibilityLayer={false}
        >
          <CartesianGrid horizontal={false} stroke="var(--sluice-line)" />
          <XAxis
            type="number"
            tick={{ fill: 'var(--mantine-color-dimmed)', fontSize: 12 }}
            tickLine={false}
            axisLine={false}
            ticks={[...ticks]}
            domain={[0, ticks.at(-1) ?? 0]}
            interval="preserveStartEnd"
            tickFormatter={formatTick}
          />
          <YAxis
            type="category"
            dataKey="name"
            width={namesWidth}
            tick={{ fill: 'var(--mantine-color-text)', fontSize }}
            tickLine={false}
            axisLine={false}
            tickFormatter={fitting}
          />
          <Tooltip
            isAnimationActive={false}
            cursor={{ fill: 'var(--mantine-color-default-hover)' }}
            contentStyle={{
              background: 'var(--sluice-card)',
              border: '1px solid var(--sluice-line)',
              borderRadius: 8,
              fontSize: 13,
            }}
            itemStyle={{ color: 'var(--mantine-color-text)' }}
            labelStyle={{ color: 'var(--mantine-color-dimmed)' }}
            formatter={(value) => format(Number(value))}
          />
          <Bar
            dataKey="value"
            name={label}
            fill="var(--chart-1)"
            maxBarSize={20}
            radius={[0, 3, 3, 0]}
            isAnimationActive={false}
          />
        </BarChart>
      </ResponsiveContainer>
    </Box>
  );
}
