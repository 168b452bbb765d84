import {
  type Icon,
  IconBox,
  IconBuildingBank,
  IconChartBar,
  IconKey,
  IconLayoutDashboard,
  IconListCheck,
  IconPlayerPlay,
  IconPlug,
  IconReportMoney,
  IconServer,
  IconSettings,
  IconStack2,
  IconTags,
  IconUsers,
} from '@tabler/icons-react';
import type { LinkProps } from '@tanstack/react-router';

/** A line of the shell's navigation. */
export interface NavigationEntry {
  readonly label: string;
  readonly to: NonNullable<LinkProps['to']>;
  readonly icon: Icon;
  /** Shown to operators only, under a separate heading. */
  readonly isForOperators?: boolean;
}

/** The pages, in display order. */
export const navigation: readonly NavigationEntry[] = [
  { label: 'Overview', to: '/', icon: IconLayoutDashboard },
  { label: 'Keys', to: '/keys', icon: IconKey },
  { label: 'Usage', to: '/usage', icon: IconChartBar },
  { label: 'Jobs', to: '/jobs', icon: IconListCheck },
  { label: 'Playground', to: '/playground', icon: IconPlayerPlay },
  { label: 'Models and prices', to: '/models', icon: IconTags },
  { label: 'Settings', to: '/settings', icon: IconSettings },
  { label: 'Accounts', to: '/operator/accounts', icon: IconBuildingBank, isForOperators: true },
  { label: 'Users', to: '/operator/users', icon: IconUsers, isForOperators: true },
  { label: 'Vendors', to: '/operator/vendors', icon: IconPlug, isForOperators: true },
  { label: 'All models', to: '/operator/models', icon: IconBox, isForOperators: true },
  { label: 'Queues & workers', to: '/operator/workers', icon: IconServer, isForOperators: true },
  { label: 'All usage', to: '/operator/usage', icon: IconReportMoney, isForOperators: true },
  { label: 'All jobs', to: '/operator/jobs', icon: IconStack2, isForOperators: true },
];
