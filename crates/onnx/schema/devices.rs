//! Distribution of a model over several devices.

use prost::Message;

use super::DimensionValue;

/// A set of devices.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct DeviceConfigurationProto {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub num_devices: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub device: Vec<String>,
}

/// Distribution of one node over devices.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct NodeDeviceConfigurationProto {
    #[prost(string, optional, tag = "1")]
    pub configuration_id: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub sharding_spec: Vec<ShardingSpecProto>,
    #[prost(int32, optional, tag = "3")]
    pub pipeline_stage: Option<i32>,
}

/// Distribution of one tensor over devices.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct ShardingSpecProto {
    #[prost(string, optional, tag = "1")]
    pub tensor_name: Option<String>,
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub device: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub index_to_device_group_map: Vec<IntIntListEntryProto>,
    #[prost(message, repeated, tag = "4")]
    pub sharded_dim: Vec<ShardedDimProto>,
}

/// A number and the numbers that it maps to.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct IntIntListEntryProto {
    #[prost(int64, optional, tag = "1")]
    pub key: Option<i64>,
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub value: Vec<i64>,
}

/// Division of one axis.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct ShardedDimProto {
    #[prost(int64, optional, tag = "1")]
    pub axis: Option<i64>,
    #[prost(message, repeated, tag = "2")]
    pub simple_sharding: Vec<SimpleShardedDimProto>,
}

/// Division of an axis into equal shards.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct SimpleShardedDimProto {
    #[prost(int64, optional, tag = "3")]
    pub num_shards: Option<i64>,
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub dim: Option<DimensionValue>,
}
